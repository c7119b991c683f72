#!/bin/sh
# Builds the Debian package: deploy/deb/build.sh [FOLDER], by default into build/
#
# Needs dpkg-deb and a Python of at least 3.11, and neither root nor the network. Takes the tracked files of the working
# tree, or all files of an unpacked archive of it. The same commit gives the same bytes: every time stamp is the commit's
# (or SOURCE_DATE_EPOCH; in an archive, that of pyproject.toml), and the modes do not depend on the umask. PYTHON names
# another Python.
set -eu

cd "$(dirname "$0")/../.."
target=${1:-build}
python=${PYTHON:-python3}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
if [ -e .git ]; then
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
    files() { git ls-files -z translate backends harness nfparity; }
else
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y pyproject.toml)}
    files() { find translate backends harness nfparity -name __pycache__ -prune -o -type f -print0; }
fi
export SOURCE_DATE_EPOCH

umask 022
mkdir -p "$target"
stage=$(mktemp -d "$target/deb.XXXXXX")
trap 'rm -rf "$stage"' EXIT
root=$stage/root
share=$root/usr/share
documents=$share/doc/nfparity
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$share/nfparity" "$share/python3/runtime.d" "$documents"

# A private folder: modules with names as general as "translate" get in nobody's way there.
files | xargs -0 cp --parents -t "$share/nfparity"
cp deploy/deb/nfparity "$root/usr/bin/nfparity"
cp deploy/deb/rtupdate "$share/python3/runtime.d/nfparity.rtupdate"
"$python" -m nfparity.capture.package "$share/nfparity/nfparity-capture.pyz"
"$python" -m nfparity.kubectl.package "$root/usr/bin/kubectl-nfparity"

"$python" -m nfparity.manual "$share"
gzip -9n "$share"/man/man1/*.1

cp README.md docs/*.md docs/*.svg "$documents"
gzip -9n <CHANGELOG.md >"$documents/CHANGELOG.md.gz"
cp deploy/deb/copyright "$documents/copyright"
maintainer=$(sed -n 's/^Maintainer: //p' deploy/deb/control)
gzip -9n >"$documents/changelog.gz" <<END
nfparity ($version) stable; urgency=medium

  * Version $version; CHANGELOG.md.gz in this folder lists the changes.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END

# Installed-Size is in KiB; it counts files in whole KiB, as dpkg-gencontrol does, so that file systems agree.
size=$(find "$root/usr" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
sed "s/@VERSION@/$version/; s/@SIZE@/$size/" deploy/deb/control >"$root/DEBIAN/control"
cp deploy/deb/postinst deploy/deb/prerm "$root/DEBIAN"
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs -d '\n' md5sum) >"$root/DEBIAN/md5sums"

chmod -R u=rwX,go=rX "$root"
find "$root" -type f -exec chmod 644 {} +
chmod 755 "$root/usr/bin/nfparity" "$root/usr/bin/kubectl-nfparity" "$root/DEBIAN/postinst" "$root/DEBIAN/prerm" \
    "$share/nfparity/nfparity-capture.pyz" "$share/python3/runtime.d/nfparity.rtupdate"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

dpkg-deb --root-owner-group --uniform-compression -Zxz --build "$root" "$stage/made.deb" >/dev/null
mv "$stage/made.deb" "$target/nfparity_${version}_all.deb"
echo "$target/nfparity_${version}_all.deb"
