#!/bin/bash
# Command 'eval', a client of job 'judge': what runs inside its step.
set -u

job_folder='/jobs/exp/judge'\''s job'
job_logs=/logs/judge
job_command=eval

export GREETING='it'\''s fine'
export HF_HOME=/hf

echo "$SLURM_JOB_ID.$SLURM_STEP_ID" >"$job_folder/$job_command.step"

cd -- /nemo_run/code || exit 1

# <await.sh>

await judge-server 600 /health 200
ref_judge_server_host=$job_host
ref_judge_server_port=$job_port
ref_judge_server_address="http://$job_host:$job_port"

await sandbox 1800
ref_sandbox_host=$job_host
ref_sandbox_port=$job_port
ref_sandbox_address="http://$job_host:$job_port"

export SANDBOX="$ref_sandbox_host"

job_argv=(
    python
    -m
    newskills.run
    ++server.base_url="$ref_judge_server_address"/v1
    '++question=What'\''s
$up?'
    ''
)
exec -- "${job_argv[@]}"
