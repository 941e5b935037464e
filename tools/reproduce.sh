#!/usr/bin/env bash
# Builds the images a second time, from a copy of the sources in another directory and with an empty
# build cache, and compares the archives byte for byte. `make reproducible` has built the first ones,
# which are the arguments, and passes on what the copy, which is no git checkout, cannot find out.
set -euo pipefail
cd "$(dirname "$0")/.."

(($#)) || { echo "usage: $0 ARCHIVE..." >&2; exit 2; }
copy=$(mktemp -d)
trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT

git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do if [[ -e $file ]]; then printf '%s\0' "$file"; fi; done |
  tar --null --files-from=- -cf - | tar -xf - -C "$copy"
GOCACHE=$copy/.gocache make --no-print-directory -C "$copy" image

for archive in "$@"; do
  if ! cmp "$archive" "$copy/$archive"; then
    sha256sum dist/linux-*/* >&2
    (cd "$copy" && sha256sum dist/linux-*/*) >&2
    echo "the two builds of $archive differ" >&2
    exit 1
  fi
  echo "the two builds of $archive are the same, byte for byte"
done
