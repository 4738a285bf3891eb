# The image in which `ns` itself runs on clusters: newskills' dependencies. The code comes with each job, at /nemo_run/code.
FROM docker.io/library/python:3.12-slim
RUN pip install --no-cache-dir 'newskills[math,hf,wandb]'
