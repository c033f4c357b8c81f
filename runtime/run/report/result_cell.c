/* SPDX-License-Identifier: Apache-2.0 */
/* What a cell showed, as JSON.  Pure. */
#include "runtime/run/report/result_cell.h"

#include "runtime/base/json/json.h"
#include "runtime/session/repl/repl_channel.h"

static void put_displays(struct json_writer *w, const struct cell_outcome *cell)
{
	json_put_key(w, "displays");
	json_open_array(w);
	for (size_t i = 0; i < cell->ndisplays; i++) {
		const struct cell_display *d = &cell->displays[i];
		json_open_object(w);
		json_member_text(w, "type", d->type);
		json_put_bytes(w, d->bytes, d->size);
		json_close_object(w);
	}
	json_close_array(w);
}

static void put_exception(struct json_writer *w, const struct cell_outcome *cell)
{
	json_put_key(w, "exception");
	if (!cell->exception_type) {
		json_put_null(w);
		return;
	}
	json_open_object(w);
	json_member_text(w, "type", cell->exception_type);
	json_member_text(w, "message", cell->exception_message);
	json_member_text(w, "traceback", cell->traceback);
	json_close_object(w);
}

void result_put_cell(struct json_writer *w, const struct cell_outcome *cell)
{
	json_put_key(w, "cell");
	json_open_object(w);
	json_member_u64(w, "number", cell->number);
	json_member_text(w, "value", cell->value);
	put_displays(w, cell);
	json_member_u64(w, "displays_left_out", cell->left_out);
	put_exception(w, cell);
	json_member_bool(w, "restarted", cell->is_new);
	json_member_bool(w, "lost", cell->is_lost);
	json_member_bool(w, "claimed", cell->is_claimed);
	json_close_object(w);
}
