pip install -q 'vllm>=1'
