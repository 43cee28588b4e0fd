/* Algorithms of MSCCL: refused, with one line that names the file; or read, and then what is written of it reads as the
 * same, with the same findings. */
#define COST_FLOOR_MS 1000
#include "xml_mutator.h"
#include "format/msccl/msccl.h"
#include "msccl/msccl.h"

const Mutator mutators[] = { xml_mutate, NULL };

const char *const dictionary[] = { "<algo", "</algo>", "<gpu", "</gpu>", "<tb", "</tb>", "<step", "/>", "name=\"",
	"proto=\"", "Simple", "LL128", "nchannels=\"", "nchunksperloop=\"", "ngpus=\"", "coll=\"", "inplace=\"",
	"outofplace=\"", "minBytes=\"", "maxBytes=\"", "id=\"", "i_chunks=\"", "o_chunks=\"", "s_chunks=\"", "send=\"",
	"recv=\"", "chan=\"", "s=\"", "type=\"", "srcbuf=\"", "srcoff=\"", "dstbuf=\"", "dstoff=\"", "cnt=\"",
	"depid=\"", "deps=\"", "hasdep=\"", "\"rcs\"", "\"rrc\"", "\"rrs\"", "\"rrcs\"", "\"cpy\"", "\"re\"", "\"nop\"",
	"allreduce", "allgather", "reduce_scatter", "gather", "scatter", "alltoall", "broadcast", "reduce", "1", "2",
	"-1", "72", "128", "32767", "99999999999", "<!--", "-->", "<?xml?>", "<!DOCTYPE", "\xff", NULL };

#define PROGRAM Msccl
#define program_read msccl_read
#define program_check msccl_check
#define program_write msccl_write
#define program_kind(p) (p)->n_channels
#include "foreign_program.h"
