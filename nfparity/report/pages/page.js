"use strict";
(() => {
  const MOST_PRINTED = 200;
  const findings = [...document.querySelectorAll(".finding")];
  const sections = [...document.querySelectorAll(".group")];
  const chunks = [...document.querySelectorAll(".chunk")];
  const form = document.getElementById("filters");
  const shown = document.getElementById("shown");

  // The details of the later findings are kept as numbers of lines of escaped HTML.
  let bodies = null;
  const fill = (finding) => {
    const body = finding.dataset.body;
    if (body === undefined) return;
    bodies ??= JSON.parse(document.getElementById("bodies").textContent);
    const lines = bodies.findings[body].map((line) => bodies.lines[line]);
    finding.firstElementChild.insertAdjacentHTML("afterend", lines.join("\n"));
    delete finding.dataset.body;
  };
  document.addEventListener("toggle", (event) => {
    if (event.target.open && event.target.matches(".finding")) fill(event.target);
  }, true);

  // On paper, the details of few findings are all shown.
  let opened = [];
  addEventListener("beforeprint", () => {
    const visible = findings.filter((finding) => !finding.hidden);
    if (visible.length > MOST_PRINTED) return;
    opened = visible.filter((finding) => !finding.open);
    for (const finding of opened) {
      fill(finding);
      finding.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const finding of opened) finding.open = false;
    opened = [];
  });

  if (form === null) return;
  const text = document.getElementById("text");
  const section = document.getElementById("section");
  const node = document.getElementById("node");
  const levels = [...form.querySelectorAll("input[name=level]")];
  let words = null;
  const read = () => {
    words ??= findings.map((finding) => finding.firstElementChild.textContent.toLowerCase());
  };
  const filter = () => {
    read();
    const wanted = text.value.trim().toLowerCase();
    const allowed = new Set(levels.filter((level) => level.checked).map((level) => level.value));
    const counts = new Map();
    let total = 0;
    findings.forEach((finding, index) => {
      const chunk = finding.parentElement;
      const group = chunk.parentElement;
      const fits = allowed.has(finding.dataset.level)
        && (section.value === "" || group.id === section.value)
        && (node === null || node.value === "" || finding.dataset.nodes.includes(` ${node.value} `))
        && words[index].includes(wanted);
      if (finding.hidden === fits) finding.hidden = !fits;
      if (!fits) return;
      total += 1;
      counts.set(group, (counts.get(group) ?? 0) + 1);
      counts.set(chunk, (counts.get(chunk) ?? 0) + 1);
    });
    for (const chunk of chunks) {
      const count = counts.get(chunk) ?? 0;
      chunk.hidden = count === 0;
      chunk.style.containIntrinsicBlockSize = `auto ${count * 4}rem`;
    }
    for (const group of sections) {
      const count = counts.get(group) ?? 0;
      group.hidden = count === 0;
      group.querySelector(".count").textContent = count;
    }
    const all = `${findings.length} finding${findings.length === 1 ? "" : "s"}`;
    shown.textContent = total === findings.length ? all : `${total} of ${all}`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    text.focus();
  });
  form.hidden = false;
  // A browser may have kept the values of an earlier visit.
  setTimeout(filter);
})();
