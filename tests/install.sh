#!/usr/bin/env bash
# Install ridge, its data, man page and completion under a folder.
# usage: tests/install.sh BUILD PREFIX_WITH_DESTDIR
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=$1
prefix=$2
cd "$(dirname "$0")/.."
install -d "$prefix/bin" "$prefix/lib" "$prefix/include/ridge" "$prefix/share/ridge" \
    "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" "$prefix/share/doc/ridge"
install -m 755 "$build/ridge" "$prefix/bin/"
[ -x "$build/ridge-probe" ] && install -m 755 "$build/ridge-probe" "$prefix/bin/"
install -m 644 "$build/libridge.a" "$prefix/lib/"
(cd sim && find . -name '*.h' -exec install -D -m 644 {} "$prefix/include/ridge/{}" \;)
for data in hw models plots; do
    find "$data" -type f -exec install -D -m 644 {} "$prefix/share/ridge/{}" \;
done
"$build/ridge" help --man >"$prefix/share/man/man1/ridge.1"
"$build/ridge" help --completion >"$prefix/share/bash-completion/completions/ridge"
install -m 644 README.md LICENSE "$prefix/share/doc/ridge/"
