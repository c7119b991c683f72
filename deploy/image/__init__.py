"""Container images, built without a container runtime: ``python -m deploy.image FOLDER`` (``make image``).

``root`` makes a file system with debootstrap and apt; ``layer`` packs it; ``layout`` writes the archive that
docker, podman and skopeo load; ``sbom`` lists the packages of the file system. Only ``root`` needs root and
the network. The same packages give the same bytes.
"""
