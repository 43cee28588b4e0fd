/* Every bound on input, with its reason. A value past one is refused with LIMIT before anything is allocated
 * for it; tests/limits holds one input at each limit and one past it. */
#ifndef BLINK_LIMITS_H
#define BLINK_LIMITS_H

enum {
	LIMIT_FILE_BYTES = 256 << 20,	/* any input file: with one tree for each rank and a switch on each edge, an
					 * allgather of 2048 ranks is 108 MiB; one of 4095 ranks over a fat tree, by
					 * numbers of edges, is 148 MiB, over a dragonfly+ 194 */
	LIMIT_DEPTH = 32,		/* nesting of XML elements or JSON values: ours need 6 */
	LIMIT_DOC_VALUES = 1 << 24,	/* JSON values, XML elements and attributes that are in memory at once, each as
					 * 72 to 150 bytes: of a schedule one tree, and everything outside trees;
					 * LIMIT_LINKS links are up to 9 million */
	LIMIT_ATTRIBUTES = 64,		/* of one XML element: ours have 8 */
	LIMIT_XML_BYTES = 8 << 20,	/* of one tag, comment or text of XML: libxml2 ends at 10 million */
	LIMIT_NUMBER_BYTES = 40,	/* characters of a number: the shortest form of a double has at most 24 */
	LIMIT_ID_BYTES = 64,		/* an id of a vertex or node */
	LIMIT_TEXT_BYTES = 4096,	/* a name, a source, any other text */
	LIMIT_RANKS = 65536,		/* GPUs: compact schedules are for that many; LIMIT_TREE_EDGES is a thousand
					 * trees of 4096 ranks */
	LIMIT_FILE_LEVELS = 8,		/* topology files within files: a server, its rack, rows of racks need 3 */
	LIMIT_FABRICS = 64,		/* of one file: networks that join the same servers */
	LIMIT_NOTES = 1024,		/* lines about what was assumed: a line for each GPU of a server, and for each
					 * file of a cluster some */
	LIMIT_NODES = 8192,		/* servers: one GPU each at worst */
	LIMIT_VERTICES = 1 << 18,		/* GPUs, CPUs, switches, NICs */
	LIMIT_LINKS = 1 << 20,		/* one per direction */
	LIMIT_LINK_COUNT = 1024,	/* physical links that one link bundles */
	LIMIT_TREES = 1 << 19,		/* of one schedule: an alltoall of 724 ranks has as many pairs */
	LIMIT_TREE_EDGES = 1 << 22,	/* edges of all trees together: an allgather of 2048 ranks has a little less;
					 * 32 bytes each over two links, and 0.6 us to read and check */
	LIMIT_PAIR_RANKS = 4096,	/* of tables of all pairs of ranks: 24 bytes each */
	LIMIT_SHARED_RANKS = 1024,	/* that share memory, simulated: each event is looked for among all */
	LIMIT_COMM_RANKS = 65536,	/* of a communicator, as LIMIT_RANKS */
	LIMIT_IMAGES = 1 << 18,		/* trees of a compact schedule, of which representatives are listed: 4 for each
					 * of 65536 ranks, 16 of 16384. To take its part, a rank counts what those
					 * that it receives from publish in each: 3 us of 16384 ranks */
	LIMIT_PATH_IMAGES = 1 << 26,	/* the same of an alltoall: a path for each pair of 8192 ranks. A rank looks at
					 * those alone that it takes part in */
	LIMIT_STAYING_HOPS = 1 << 24,	/* of their edges, those that begin or end at ranks that stay in their
					 * places: 16 bytes each where a rank takes its part. 420 ranks that stay
					 * beside 20 servers of 36 have 4 million */
	LIMIT_IN_LINKS = 5 << 22,	/* numbers of links or edges in all trees of each rank: one tree for each of
					 * 4095 ranks of a torus, 6 characters each; 120 MiB of text */
	LIMIT_IN_TREES = 64,		/* trees of one rank; of an alltoall all in memory while its paths are listed */
	LIMIT_RINGS = 1 << 18,		/* hops of all Hamiltonian cycles that are listed: the 5040 of a full mesh of
					 * 8 GPUs have 40320 */
	LIMIT_RING_STEPS = 1 << 22,	/* of the search for them, and of the choice of some: a second at most */
	LIMIT_RING_WALK = 1 << 19,	/* steps times ranks of the search for one ring where they are not listed */
	LIMIT_MOST_RINGS = 4096,	/* of one schedule */
	LIMIT_SETS = 1 << 18,		/* sets of GPUs of one batch: a machine of 16 has 65519 */
	LIMIT_INDEX = 1 << 20,		/* entries of an index: allreduce and every root of a broadcast over all sets
					 * of 16 GPUs are 589700 */
	LIMIT_CHANGES = 1 << 16,	/* losses of an index: those of 128 GPUs are some thousands */
	LIMIT_ROUTE_CELLS = 1 << 24,	/* switches next to GPUs, times vertices: 12 bytes each. 1024 H100: 844960 */
	LIMIT_ROUTE_LINKS = 64,		/* links of one edge: switches between two GPUs */
	LIMIT_MWU_ROUNDS = 200000,	/* arborescence searches of one packing */
	LIMIT_LP_ROUNDS = 5000,		/* rounds of column generation */
	LIMIT_LP_BASIS = 1000,		/* tight rows: they are solved for exactly in time that grows with the cube */
	LIMIT_ILP_TREES = 512,		/* a pool of this size is not made larger before the ILP chooses from it */
	LIMIT_ILP_RANKS = 32,		/* with more, the linear program's trees are kept: ILPs end without one */
	LIMIT_WIDEN_CELLS = 5000000,	/* pivots times size of the linear programs that say how much each tree of a
					 * pool can be used: 40 ms */
	LIMIT_SPARSEST_CELLS = 10000000, /* likewise, of branch and bound for the fewest: 20 ms */
	LIMIT_ILP_CELLS = 12000000,	/* nodes times size of all ILPs of a compile: seconds, for an ILP of any size */
	LIMIT_FEWER_CELLS = 4000000,	/* likewise where some trees are known, and fewer are wanted */
	LIMIT_ILP_NODES = 300,		/* branch-and-bound nodes of one ILP, so that bytes never depend on time; on a
					 * DGX-1 more nodes find no smaller number of trees */
	LIMIT_ILP_SECONDS = 60,		/* of one ILP, as a second limit; one that reaches it has no solution */
	LIMIT_LP_STEPS = 200000,	/* of the simplex method, for one linear program */
	LIMIT_MWU_TREES = 4096,		/* kept of what MWU finds, the heaviest */
	LIMIT_FEW_TREES = 8192,		/* spanning trees in the search for the fewest: a DGX-1 has at most 3456 */
	LIMIT_DEEP_TREES = 1000,	/* spanning trees where GPUs have links of equal capacity: from there on the
					 * search for five pairs and more looks for none that are deeper */
	LIMIT_FEW_LINKS = 128,		/* links of the topologies that it looks at */
	LIMIT_FLAT_NODES = 50000,	/* of the search for shallower trees, at each depth */
	LIMIT_SHALLOW_RANKS = 8,	/* up to here few trees are looked for at the least depth only, by a tableau */
	LIMIT_FLAT_RANKS = 16,		/* up to here trees are planned once more for each smaller depth */
	LIMIT_RATE_NODES = 120000,	/* of the search for the highest rate of a number of trees */
	LIMIT_FEW_NODES = 400000,	/* of that search: about half a second */
	LIMIT_PAIR_STEPS = 20000000,	/* of the search for fewer pairs, for each number of them: 40 ms */
	LIMIT_EVEN_STEPS = 250000,	/* of that for pairs that are no deeper */
	LIMIT_FLAT_STEPS = 10000000,	/* for shallower pairs, and for rates between, likewise */
	LIMIT_RATE_STEPS = 400000000,	/* for max_trees pairs at the highest rate that there may be */
	LIMIT_MSCCL_GPUS = 1024,	/* of an algorithm of MSCCL: each rank reads no more elements */
	LIMIT_MSCCL_BLOCKS = 1024,	/* threadblocks of a GPU: executors have room for as many */
	LIMIT_MSCCL_STEPS = 1 << 18,	/* of all threadblocks: 4096 elements for each of 64 GPUs */
	LIMIT_MSCCL_CHUNKS = 32767,	/* of a buffer: executors keep offsets in 16 bits */
	LIMIT_MSCCL_CELLS = 1 << 22,	/* chunks of all buffers: 64 GPUs with as many */
	LIMIT_MSCCL_BYTES = 1 << 28,	/* of their values in a run */
	LIMIT_MSCCL_CLOCKS = 1 << 26,	/* steps times threadblocks: clocks of 4 bytes */
	LIMIT_MSCCLPP_SHARES = 64,	/* threadblocks that share the ranges of an operation of MSCCL++ */
	LIMIT_CALLS = 64,		/* calls of a phase of a job, and phases */
	LIMIT_RANK_CALLS = 8,		/* calls at once of one rank: each has a communicator, and at least one block of
					 * a GPU, of the quarter that communicators share */
	LIMIT_MEASUREMENTS = 1 << 16,	/* lines of a file of measured hierarchies */
	LIMIT_ILP_UNITS = 192,		/* the finest unit of rate: bound / 192 */
};

/* Chunks times edges of one simulation, symmetric edges counted once: some minutes, or until --budget. Those that are
 * kept take 56 bytes each. */
#define LIMIT_SIM_STEPS (INT64_C(1) << 28)
#define LIMIT_SIM_KEPT (INT64_C(1) << 22)

/* Of each simulation in the search for a size of chunks: some seconds. */
#define LIMIT_SIM_SEARCH (INT64_C(1) << 20)

/* Steps to verify a schedule, at about a ns each: an allreduce over 1024 ranks whose bound is a cut or a partition
 * takes a tenth; the lengths of an allgather behind switches may be for 690 ranks, where hops do not prove them. */
#define LIMIT_VERIFY_STEPS INT64_C(2000000000)

/* Steps to find the job of an index that another one is isomorphic to: half a second. */
#define LIMIT_MATCH_STEPS INT64_C(500000000)

/* Capacity of one physical link, bytes/s: 1e-6 to 1e6 GB/s. All capacities together stay below 4e18, so that
 * every cut fits an int64_t. Latency, ns: up to one second. */
#define LIMIT_CAPACITY_MIN INT64_C(1000)
#define LIMIT_CAPACITY_MAX INT64_C(1000000000000000)
#define LIMIT_CAPACITY_SUM INT64_C(4000000000000000000)
#define LIMIT_LATENCY_NS INT64_C(1000000000)

/* What a part of a schedule waits before it starts, ns: a second, too. Times LIMIT_CAPACITY_SUM it fits an int64_t. */
#define LIMIT_SETUP_NS INT64_C(1000000000)

/* Lengths of links that prove a time for a matrix of bytes: with LIMIT_MESSAGE of these, sums are below 2^126. */
#define LIMIT_MATRIX_LENGTH (INT64_C(1) << 40)

/* Bytes of a message that an index tells from others: whole numbers that a double holds. */
#define LIMIT_MESSAGE (INT64_C(1) << 53)

#endif
