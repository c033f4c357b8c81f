/* SPDX-License-Identifier: Apache-2.0 */
/* libexec/cejail/serve: the service, as `cejail serve` executes it. */
#include <stdlib.h>

int main(void)
{
	return EXIT_FAILURE;
}
