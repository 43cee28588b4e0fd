/* A module: the kernels of one type, KERNEL_TYPE; without one, those that only move. Compiled once for each type: for
 * GPUs, and as C for their twins. */
#include "kernels/collective.h"
#include "kernels/entry.h"
#ifndef KERNEL_TYPE
#include "kernels/copies.h"
#include "kernels/measure.h"
#include "kernels/messages.h"
#endif

#ifdef KERNEL_TYPE
#define NAMED_(type, op) blink_##type##_##op
#define NAMED(type, op) NAMED_(type, op)
KERNEL(NAMED(KERNEL_TYPE, sum), gpu_call, block, run_collective(&memory_of(block), &given, SUM))
KERNEL(NAMED(KERNEL_TYPE, prod), gpu_call, block, run_collective(&memory_of(block), &given, PROD))
KERNEL(NAMED(KERNEL_TYPE, max), gpu_call, block, run_collective(&memory_of(block), &given, MAX))
KERNEL(NAMED(KERNEL_TYPE, min), gpu_call, block, run_collective(&memory_of(block), &given, MIN))
#else
KERNEL(blink_move, gpu_call, block, run_collective(&memory_of(block), &given, SUM))
KERNEL(blink_measure, gpu_measure, block, run_measure(&memory_of(block), &given))
KERNEL(blink_copies_begin, gpu_call, block, begin_copies(&memory_of(block), &given))
KERNEL(blink_copies_end, gpu_call, block, end_copies(&memory_of(block), &given))
KERNEL(blink_messages, gpu_exchange, messages_block, run_messages(&memory_of(messages_block), &given))
#endif
