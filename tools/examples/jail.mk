# SPDX-License-Identifier: Apache-2.0
#
# Any target of a directory's Makefile, built in a jail: jail-test makes the target "test".
#
#	make -f tools/examples/jail.mk jail-test
#	make -f tools/examples/jail.mk jail-all KEEP="hello docs"
#
# The build sees a copy of the directory and has no network.  What it changes ends with the jail, except
# for the files of KEEP, which are copied to JAIL_OUT.  It needs cejail in PATH.
JAIL_OUT ?= jail-out
LIMITS   ?= --timeout 10m --memory 2G --pids-limit 512

jail-%:
	cejail run --profile ci --network none $(LIMITS) --overlay .:/src --workdir /src \
		$(if $(KEEP),--artifacts $(JAIL_OUT) $(addprefix --artifact-path /src/,$(KEEP))) -- make $*
