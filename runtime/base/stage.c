/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/stage.h"

int stages_enter(struct jail *j, const struct stage *table, size_t n, struct cj_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (table[i].is_wanted && !table[i].is_wanted(j))
			continue;
		if (table[i].enter(j, err) < 0) {
			stages_leave(j, table, i);
			cj_stage(err, table[i].name);
			return cj_wrap(err, "%s", table[i].name);
		}
	}
	return 0;
}

void stages_leave(struct jail *j, const struct stage *table, size_t n)
{
	while (n-- > 0)
		if (table[n].leave)
			table[n].leave(j);
}
