#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /etc/slurm/epilog.sh: after the job, delete the containers whose cejail-oci Slurm killed.
states=/run/slurm-oci/$SLURM_JOB_ID
for state in "$states"/*; do
	[ ! -d "$state" ] || runuser -u "$SLURM_JOB_USER" -- \
		/usr/local/bin/cejail-oci --root="$states" delete --force "${state##*/}"
done
rm -rf "$states"
