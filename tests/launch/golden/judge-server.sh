#!/bin/bash
# Command 'judge-server', a server of job 'judge': what runs inside its step.
# Their values come with the environment only: HF_TOKEN.
set -u

job_folder='/jobs/exp/judge'\''s job'
job_logs=/logs/judge
job_command=judge-server

export GREETING='it'\''s fine'
export HF_HOME=/hf

echo "$SLURM_JOB_ID.$SLURM_STEP_ID" >"$job_folder/$job_command.step"

export VLLM_LOGGING='it'\''s $HOME'

cd -- /nemo_run/code || exit 1

# <setup.sh>

set_up

# <port.sh>

# <await.sh>

# The first process chooses for all of them.
if [[ ${SLURM_PROCID:-0} -eq 0 ]]; then choose_port 0 "$SLURMD_NODENAME" meet; else await judge-server 1800; fi
ref_judge_server_host=$job_host
ref_judge_server_port=$job_port
ref_judge_server_address="http://$job_host:$job_port"
ref_judge_server_meeting="$job_host:$job_meeting"
ref_judge_server_meeting_port=$job_meeting

ref_judge_server_node="$NODE_0"

export MASTER_ADDR="$ref_judge_server_node"
export MEETING="$ref_judge_server_meeting"

job_argv=(
    vllm
    serve
    '/models/a b'
    --port="$ref_judge_server_port"
)
exec -- "${job_argv[@]}"
