#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slurm-down.sh [--state DIR] [--purge] - stop what slurm-up.sh started; --purge also deletes its state.
set -uo pipefail
STATE=${SLURM_DEV_STATE:-${TMPDIR:-/tmp}/slurm-dev} PURGE=0
while [ $# -gt 0 ]; do case $1 in --state) STATE=$2; shift;; --purge) PURGE=1;; *) echo "unknown option $1" >&2; exit 2;; esac; shift; done
[ -d "$STATE" ] || exit 0
export SLURM_CONF=$STATE/slurm.conf
NSP=sd-
# only processes whose pid we recorded, and that still carry the expected name
stop() { local f=$1 name=$2 sig=${3:-TERM} p; [ -s "$f" ] || return 0; p=$(cat "$f")
  [[ "$(cat "/proc/$p/comm" 2>/dev/null)" == "$name"* ]] && kill -"$sig" "$p" 2>/dev/null
  for _ in $(seq 100); do [[ "$(cat "/proc/$p/comm" 2>/dev/null)" == "$name"* ]] || { rm -f "$f"; return 0; }; sleep 0.1; done
  kill -KILL "$p" 2>/dev/null; rm -f "$f"; }
[ -s "$STATE/run/slurmctld.pid" ] && timeout 5 scancel --state=PENDING,RUNNING --quiet --user="$(id -un)" 2>/dev/null
for _ in $(seq 30); do [ -z "$(timeout 2 squeue -h -t CG,R 2>/dev/null)" ] && break; sleep 0.2; done
# ask all at once, then wait for each in turn
for f in "$STATE"/run/slurmctld.pid "$STATE"/run/slurmd.*.pid; do [ -s "$f" ] || continue
  p=$(cat "$f"); [[ "$(cat "/proc/$p/comm" 2>/dev/null)" == slurm* ]] && kill "$p" 2>/dev/null; done
stop "$STATE/run/sshd.pid" sshd
stop "$STATE/run/slurmctld.pid" slurmctld
for f in "$STATE"/run/slurmd.*.pid; do [ -e "$f" ] && stop "$f" slurmd; done
# steps that outlive their slurmd carry our spool directory's configuration: end them by pid
for p in $(pgrep -x slurmstepd || true); do
  tr '\0' '\n' < "/proc/$p/environ" 2>/dev/null | grep -qx "SLURM_CONF=$STATE/slurm.conf" && kill -KILL "$p" 2>/dev/null; done
stop "$STATE/run/slurmdbd.pid" slurmdbd
stop "$STATE/run/mariadbd.pid" mariadbd
stop "$STATE/run/munged.pid" munged
if grep -qw netns "$STATE/options" 2>/dev/null; then
for n in $(ip -o netns list 2>/dev/null | awk -v p="^$NSP" '$1 ~ p {print $1}'); do ip link del "$n" 2>/dev/null; ip netns del "$n"; done
ip link del ${NSP}br 2>/dev/null; fi
for f in slurm gres cgroup; do [ "$(readlink /etc/slurm/$f.conf 2>/dev/null)" = "$STATE/$f.conf" ] && rm -f "/etc/slurm/$f.conf"; done
rm -f "$STATE/options"
[ "$PURGE" = 1 ] && rm -rf "$STATE"
exit 0
