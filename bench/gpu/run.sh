#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures trainings on one GPU in at most ten minutes: SFT and GRPO beside plain TRL, vLLM on and off, packed beside
# padded, memory beside its estimate, a learning curve. JSON in --out. Run it again for the parts that are left (code 75).
#
#   bench/gpu/run.sh --out results/gpu             on a GPU
#   bench/gpu/run.sh --out /tmp/tiny --tiny        on any machine; says nothing
#   WHEELS=folder bench/gpu/run.sh --out …         without a network: installs the wheels below from this folder
#   bench/gpu/run.sh --download folder             puts them there (for the Python that runs this)
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}

# What it measures, and what these import; PyTorch is the one that is there, built for its GPU.
wheels=(trl==1.16.0 transformers==5.24.0 peft==0.21.2 accelerate==1.15.0 datasets==5.2.0)
beside=(msgspec filelock platformdirs pyyaml tokenizers safetensors huggingface-hub dill multiprocess xxhash pyarrow pandas)
# Without it the parts that need it are left out.
optional=(vllm)

if [ "${1:-}" = --download ]; then
  exec "$PYTHON" -m pip download --quiet --no-deps --only-binary=:all: --dest "${2:?folder}" "${wheels[@]}" "${beside[@]}"
fi
if [ -n "${WHEELS:-}" ]; then
  site=$(mktemp -d)
  trap 'rm -rf "$site"' EXIT
  "$PYTHON" -m pip install --quiet --no-index --no-deps --no-compile --target "$site" "$WHEELS"/*.whl
  export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
elif ! "$PYTHON" -c 'import accelerate, datasets, msgspec, peft, transformers, trl' 2>/dev/null; then
  "$PYTHON" -m pip install --quiet "${wheels[@]}" "${beside[@]}"
fi
"$PYTHON" -c 'import vllm' 2>/dev/null || echo "no ${optional[*]} here: parts that need it are left out" >&2
export PYTHONPATH="src:.${PYTHONPATH:+:$PYTHONPATH}" HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error TOKENIZERS_PARALLELISM=false
"$PYTHON" -m bench.gpu.run "$@"
