/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print-ranges - the table of closed destinations, a row a line: prefix, class, what, source, with
 * tabs between.  For the tests: the manual's list and the addresses that are tried are made of it.
 */
#include <stdio.h>

#include "netns/address/ranges.h"

int main(void)
{
	for (size_t i = 0; i < ranges_count; i++)
		printf("%s\t%s\t%s\t%s\n", ranges[i].prefix, net_class_names[ranges[i].class],
		       ranges[i].what, ranges[i].source);
	return fflush(stdout) == 0 ? 0 : 1;
}
