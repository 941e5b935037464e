#!/usr/bin/env bash
# Builds the images and kubectl-device for other systems a second time, from a copy of the sources in
# another directory and with an empty build cache, and compares them byte for byte. `make reproducible`
# has built the first ones, which are the arguments, and passes on what the copy, which is no git
# checkout, cannot find out.
set -euo pipefail
cd "$(dirname "$0")/.."

(($#)) || { echo "usage: $0 FILE..." >&2; exit 2; }
copy=$(mktemp -d)
trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT

git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do if [[ -e $file ]]; then printf '%s\0' "$file"; fi; done |
  tar --null --files-from=- -cf - | tar -xf - -C "$copy"
GOCACHE=$copy/.gocache make --no-print-directory -C "$copy" images portable

for file in "$@"; do
  if ! cmp "$file" "$copy/$file"; then
    sha256sum dist/*-*/* >&2
    (cd "$copy" && sha256sum dist/*-*/*) >&2
    echo "the two builds of $file differ" >&2
    exit 1
  fi
  echo "the two builds of $file are the same, byte for byte"
done
