#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /etc/slurm/prolog.sh: the directory for the states of a job's containers, before the job.
install -d -m 755 /run/slurm-oci &&
	install -d -m 700 -o "$SLURM_JOB_USER" "/run/slurm-oci/$SLURM_JOB_ID"
