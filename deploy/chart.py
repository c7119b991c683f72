"""``python -m deploy.chart``: the Helm chart, made from ``deploy/capture.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nfparity.cli.main import VERSION

__all__ = ["CHART", "chart"]

_DEPLOY: Final = Path(__file__).parent
CHART: Final = _DEPLOY / "helm/nfparity-capture"
"""The folder of the chart."""

IMAGE: Final = "YOUR-REGISTRY/nfparity-capture"
"""The image of the manifest, which its users replace."""

_OUTPUT: Final = '"/capture/node.tar.gz"'
_TEMPLATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"image: {IMAGE}\n": 'image: {{ required "image: with its digest" .Values.image | quote }}\n',
        f"{_OUTPUT}]\n": f'{_OUTPUT}{{{{ if .Values.anonymise }}}}, "--anonymise"{{{{ end }}}}]\n',
    }
)
"""Lines of the manifest, and what the template has in their place."""

_VALUES: Final = """\
# The image that make image builds, by its digest in your registry: REGISTRY/nfparity-capture@sha256:...
image: ""
# Replace addresses and names before the snapshots leave the nodes.
anonymise: false
"""


def chart() -> dict[str, str]:
    """Return the files of the chart by their path in its folder."""
    manifest = (_DEPLOY / "capture.yaml").read_text(encoding="utf-8")
    for text, template in _TEMPLATES.items():
        assert text in manifest
        manifest = manifest.replace(text, template)
    head, rule, documents = manifest.partition("apiVersion:")
    notes = "".join(line for line in head.splitlines(keepends=True) if line.startswith("#"))
    about = (
        "apiVersion: v2\n"
        "name: nfparity-capture\n"
        "description: A snapshot of every node's packet filter, for nfparity\n"
        "type: application\n"
        f"version: {VERSION}\n"
        f'appVersion: "{VERSION}"\n'
    )
    template = f"# Made from deploy/capture.yaml by python -m deploy.chart\n{rule}{documents}"
    return {
        "Chart.yaml": about,
        "values.yaml": _VALUES,
        "templates/capture.yaml": template,
        "README.md": _readme(notes),
    }


def _readme(notes: str) -> str:
    rights = "\n".join(line[2:] for line in notes.splitlines() if line.startswith("#   "))
    return (
        "# nfparity-capture\n\n"
        "Captures every node of the cluster. `deploy/collect.sh FOLDER` fetches the snapshots:\n\n"
        "```\n"
        "helm install nfparity-capture . --set image=REGISTRY/nfparity-capture@sha256:…\n"
        "```\n\n"
        "The rights of its pods, and the reasons:\n\n"
        f"```\n{rights}\n```\n"
    )


def main() -> None:
    """Write the chart."""
    for name, text in chart().items():
        path = CHART / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
