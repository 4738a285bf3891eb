# SPDX-License-Identifier: Apache-2.0
"""Run by an interpreter that has verl: verl's own data set reads a file of ours. argv: folder with PyTorch and
transformers, the file, a folder with a tokenizer, a folder for caches. Prints what an item holds, as JSON."""

import json
import sys
import warnings

warnings.simplefilter("ignore")
sys.path.append(sys.argv[1])
from omegaconf import OmegaConf  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402
from verl.utils.dataset.rl_dataset import RLHFDataset  # noqa: E402

_, _, data, tokenizer_folder, cache = sys.argv
tokenizer = PreTrainedTokenizerFast.from_pretrained(tokenizer_folder)
config = OmegaConf.create(
    {"cache_dir": cache, "max_prompt_length": 64, "filter_overlong_prompts_workers": 1, "return_raw_chat": True}
)
rows = RLHFDataset(data_files=[data], tokenizer=tokenizer, config=config)
item = rows[1]
json.dump(
    {
        "rows": len(rows),
        "prompt": item["raw_prompt"],
        "data_source": item["data_source"],
        "ground_truth": item["reward_model"]["ground_truth"],
        "index": item["index"],
    },
    sys.stderr,
)
