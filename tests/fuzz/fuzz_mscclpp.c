/* Plans of MSCCL++: refused, with one line that names the file; or read, and then what is written of it reads as the
 * same, with the same root. */
#define COST_FLOOR_MS 1000
#include "json_mutator.h"
#include "format/mscclpp/mscclpp.h"
#include "mscclpp/mscclpp.h"

const Mutator mutators[] = { json_mutate, NULL };

const char *const dictionary[] = { "{", "}", "[", "]", "\"name\":", "\"collective\":", "\"protocol\":", "\"Simple\"",
	"\"LL\"", "\"inplace\":", "true", "false", "\"reuse_resources\":", "\"use_double_scratch_buffer\":",
	"\"gpus\":", "\"id\":", "\"input_chunks\":", "\"output_chunks\":", "\"scratch_chunks\":", "\"threadblocks\":",
	"\"ops\":", "\"channels\":", "\"channel_type\":", "\"memory\"", "\"port\"", "\"switch\"", "\"channel_ids\":",
	"\"connected_to\":", "\"remote_buffers\":", "\"remote_buffer_refs\":", "\"remote_buffer_ids\":",
	"\"access_channel_type\":", "\"access_channel_types\":", "\"rank\":", "\"type\":", "\"i\"", "\"o\"", "\"s\"",
	"\"src_buff\":", "\"dst_buff\":", "\"buffer_id\":", "\"switch_channel_id\":", "\"index\":", "\"size\":",
	"\"semaphores\":", "\"init_value\":", "\"semaphore_ids\":", "\"barrier_id\":", "\"num_threadblocks\":",
	"\"tbg_info\":", "\"tb_id\":", "\"tbg_size\":", "\"iter_context\":", "\"unit_size\":", "\"num_chunks\":",
	"\"buffer_type\":", "\"rank_groups\":", "\"ranks\":", "\"pipeline\"", "\"nop\"", "\"barrier\"", "\"put\"",
	"\"pws\"", "\"pwsf\"", "\"get\"", "\"copy\"", "\"signal\"", "\"wait\"", "\"flush\"", "\"re\"", "\"res\"",
	"\"rre\"", "\"rres\"", "\"ppkt\"", "\"rppkt\"", "\"respkt\"", "\"cpkt\"", "\"upkt\"", "\"repkt\"",
	"\"recpkt\"", "\"recspkt\"", "\"glres\"", "\"gstore\"", "\"gstorepkt\"", "\"rlxsignal\"", "\"rlxwait\"",
	"\"sem_acquire\"", "\"sem_release\"", "0", "1", "2", "16", "64", "32767", "-1", "131072", "4294967296",
	"18446744073709551615", "1e9", "\xff", NULL };

#define PROGRAM Mscclpp
#define program_read mscclpp_read
#define program_check mscclpp_check
#define program_write mscclpp_write
#define program_kind(p) (p)->gpu->n_blocks
#include "foreign_program.h"
