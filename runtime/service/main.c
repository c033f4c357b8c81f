/* SPDX-License-Identifier: Apache-2.0 */
/* libexec/cejail/serve: the service, as `cejail serve` executes it. */
#include "runtime/service/keeper/session_keeper.h"
#include "runtime/service/serve_main.h"
#include "runtime/service/worker/worker.h"
#include "runtime/service/worker/zygote_keeper.h"

int main(int argc, char **argv)
{
	struct worker_context jobs = { .keep_session = session_keep };
	const struct worker_life worker = { .main = worker_main,
					    .keep_zygote = zygote_keeper_main,
					    .context = &jobs };

	return serve_main(argc, argv, &worker);
}
