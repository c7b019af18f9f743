#!/usr/bin/env bash
# Install the packages that building, testing and plotting need, when they are missing (Debian).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

packages=(gcc make pkg-config libgsl-dev libyaml-dev libjansson-dev libsqlite3-dev libmd-dev
    libcmocka-dev gnuplot-nox libxml2-utils mandoc bsdextrautils g++)
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if ! command -v apt-get >/dev/null; then
    echo "deps: missing ${missing[*]}; install them with this system's package manager" >&2
    exit 2
fi
run=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "deps: missing ${missing[*]}; run 'apt-get install ${missing[*]}' as root" >&2
        exit 2
    }
    run=(sudo)
fi
echo "deps: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -qq >&2
"${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
