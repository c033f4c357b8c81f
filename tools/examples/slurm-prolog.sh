#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /etc/slurm/prolog.sh: the directory for the states of a user's containers, before the job.
install -d -m 755 /run/slurm-oci &&
	install -d -m 700 -o "$SLURM_JOB_UID" "/run/slurm-oci/$SLURM_JOB_UID"
