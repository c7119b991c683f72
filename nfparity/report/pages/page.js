"use strict";
(() => {
  const MOST_PRINTED = 200;
  const form = document.getElementById("filters");
  const shown = document.getElementById("shown");
  const sections = [...document.querySelectorAll(".group")];

  // With scripts, the content of <noscript> is text. Later chunks stay text until they come near the screen.
  const chunks = [...document.querySelectorAll(".chunk")].map((element) => {
    const folded = element.querySelector(":scope > noscript");
    return {
      element,
      group: element.parentElement,
      text: folded === null ? null : folded.textContent,
      findings: folded === null ? [...element.children] : [],
      items: null,
    };
  });
  const decode = (text) => {
    const field = document.createElement("textarea");
    field.innerHTML = text;
    return field.value;
  };
  // What a filter reads of a finding, from its element or from its text.
  const item = (level, nodes, words) => ({level, nodes, words: words.toLowerCase(), fits: true});
  const ofElement = (finding) =>
    item(finding.dataset.level, finding.dataset.nodes ?? "", finding.firstElementChild.textContent);
  const ofText = (text) => {
    const parts = text.split("<details ").slice(1);
    const heads = parts.map((part) => part.slice(part.indexOf(">") + 1, part.indexOf("</summary>")));
    const words = decode(heads.map((head) => head.replace(/<[^>]*>/g, "")).join("\u0001")).split("\u0001");
    return parts.map((part, index) => {
      const level = /data-level="([^"]*)"/.exec(part)[1];
      const nodes = /^[^>]*data-nodes="([^"]*)"/.exec(part);
      return item(level, nodes === null ? "" : nodes[1], words[index]);
    });
  };
  const itemsOf = (chunk) => {
    chunk.items ??= chunk.text === null ? chunk.findings.map(ofElement) : ofText(chunk.text);
    return chunk.items;
  };
  const size = (chunk, count) => {
    const style = chunk.element.style;
    style.minBlockSize = chunk.text === null ? "" : `${count * 4}rem`;
    if (chunk.text === null) style.containIntrinsicBlockSize = `auto ${count * 4}rem`;
  };
  const unfold = (chunk) => {
    if (chunk.text === null) return;
    const items = itemsOf(chunk);
    chunk.element.innerHTML = chunk.text;
    chunk.text = null;
    chunk.findings = [...chunk.element.children];
    chunk.findings.forEach((finding, index) => { finding.hidden = !items[index].fits; });
    size(chunk, items.filter((each) => each.fits).length);
  };
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      unfold(chunks.find((chunk) => chunk.element === entry.target));
    }
  }, {rootMargin: "100%"});
  for (const chunk of chunks) {
    if (chunk.text === null) continue;
    size(chunk, chunk.text.split("<details ").length - 1);
    observer.observe(chunk.element);
  }

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
    chunks.forEach(unfold);
    const visible = chunks.flatMap((chunk) => chunk.findings).filter((finding) => !finding.hidden);
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
  const isUsed = () => text.value !== "" || section.value !== "" || (node !== null && node.value !== "")
    || levels.some((level) => !level.checked);
  const filter = () => {
    const wanted = text.value.trim().toLowerCase();
    const allowed = new Set(levels.filter((level) => level.checked).map((level) => level.value));
    const of = node === null || node.value === "" ? "" : ` ${node.value} `;
    const counts = new Map();
    let total = 0;
    let all = 0;
    for (const chunk of chunks) {
      const items = itemsOf(chunk);
      const whole = section.value !== "" && chunk.group.id !== section.value;
      let count = 0;
      items.forEach((each, index) => {
        each.fits = !whole && allowed.has(each.level) && each.nodes.includes(of) && each.words.includes(wanted);
        if (each.fits) count += 1;
        const finding = chunk.findings[index];
        if (finding !== undefined && finding.hidden === each.fits) finding.hidden = !each.fits;
      });
      chunk.element.hidden = count === 0;
      size(chunk, count);
      counts.set(chunk.group, (counts.get(chunk.group) ?? 0) + count);
      total += count;
      all += items.length;
    }
    for (const group of sections) {
      const count = counts.get(group) ?? 0;
      group.hidden = count === 0;
      group.querySelector(".count").textContent = count;
    }
    const findings = `${all} finding${all === 1 ? "" : "s"}`;
    shown.textContent = total === all ? findings : `${total} of ${findings}`;
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
  // So that the first key does not wait for it.
  requestIdleCallback(() => chunks.forEach(itemsOf));
  // A browser may have kept the values of an earlier visit.
  setTimeout(() => { if (isUsed()) filter(); });
})();
