#include "choice/nccl_constants.h"

static const double speeds_2_8[N_SPEEDS] = { 42, 30, 24, 21, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12 };
static const double speeds_2_19[N_SPEEDS] = { 40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3 };
static const double speeds_hopper[N_SPEEDS] = { 60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3 };
static const double speeds_blackwell[N_SPEEDS] = { 90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18 };

static const double net_2_19[N_SPEEDS] = { 48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12 };
static const double net_hopper[N_SPEEDS] = { 48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12 };
static const double net_blackwell[N_SPEEDS] = { 96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4,
	1.2, .24, .12 };

#define VOLTA_TREE { 26.5, 18.5, 10 }
#define AMPERE_TREE { 24, 23.6, 17.8 }
#define HOPPER_TREE { 38.7, 41.4, 36 }
#define AMPERE_LL128 { 20, 20, 20 }
#define HOPPER_LL128 { 36.7, 36.7, 29 }

#define CORRECTION_LL { 1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1 }
#define CORRECTION_SIMPLE \
	{ .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9 }

const struct constants nccl_constants[N_NCCL_VERSIONS] = {
	{ .most_channels = 16 },
	{
		.nvlink = { 18, 21, 21, 21, 21 },
		.most_channels = 32,
		.speed = { speeds_2_8, speeds_2_8, speeds_2_8, speeds_2_8, speeds_2_8 },
		.net_speed = { speeds_2_8, speeds_2_8, speeds_2_8, speeds_2_8, speeds_2_8 },
		.base = { { 4.4, 4.4, 0 }, { 3.6, 10, 8.4 } },
		.hop = { { { .52, 1.25, 28 }, { .47, 1.9, 3.4 } }, { { 1, 1.9, 28 }, { 1, 2.5, 5.7 } } },
		.net = { { 5, 8.5, 28 }, { 2.7, 4, 9.6 } },
		.ring_ll = 1. / 4, .ring_ll_one_way = 1. / 3,
		.ll_most = { 39, 39, 87.7, 39, 39 },
		.tree = { VOLTA_TREE, VOLTA_TREE, { 24, 22.5, 16 }, VOLTA_TREE, VOLTA_TREE },
		.net_tree_ll128 = .915, .net_ll_hop = 1.8, .alone_ll128 = .7, .alone_tree = 1,
		.ll128 = { false, true, true, false, false },
		.correction = { CORRECTION_LL,
		    { 1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, .92, .92 },
		    CORRECTION_SIMPLE },
	},
	{
		.nvlink = { 18, 20, 20, 20, 20 },
		.most_channels = 32,
		.speed = { speeds_2_19, speeds_2_19, speeds_2_19, speeds_hopper, speeds_hopper },
		.net_speed = { net_2_19, net_2_19, net_2_19, net_hopper, net_hopper },
		.base = { { 6.8, 14, 0 }, { 6.6, 14, 8.4 } },
		.hop = { { { .6, 1.25, 28 }, { .6, 1.9, 3.4 } }, { { 1, 1.9, 28 }, { 1, 2.5, 5.7 } } },
		.net = { { 5, 8.5, 28 }, { 2.7, 4, 14 } },
		.ring_ll = 1. / 4, .ring_ll_one_way = 1. / 3,
		.ll_most = { 39, 39, 87.7, 87.7, 87.7 },
		.ring_ll128 = { 20, 20, 20, 36.7, 36.7 },
		.tree_ll128 = { AMPERE_LL128, AMPERE_LL128, AMPERE_LL128, HOPPER_LL128, HOPPER_LL128 },
		.tree = { VOLTA_TREE, VOLTA_TREE, AMPERE_TREE, HOPPER_TREE, HOPPER_TREE },
		.net_tree_ll128 = .9375, .net_ll_hop = 1, .net_hops = 2, .alone_ll128 = .7, .alone_tree = .85,
		.net_delays = true,
		.ll128 = { false, true, true, true, false }, .ll128_through = true,
		.correction = { CORRECTION_LL,
		    { 1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1 },
		    CORRECTION_SIMPLE },
	},
	{
		.nvlink = { 18, 20, 20, 20.6, 40.1 },
		.most_channels = 64,
		.speed = { speeds_2_19, speeds_2_19, speeds_2_19, speeds_hopper, speeds_blackwell },
		.net_speed = { net_2_19, net_2_19, net_2_19, net_hopper, net_blackwell },
		.base = { { 6.8, 14, 8.4 }, { 6.6, 14, 8.4 } },
		.hop = { { { .6, 1.25, 4 }, { .6, 1.9, 3.4 } }, { { 1, 1.9, 4 }, { 1, 2.5, 5.7 } } },
		.net = { { 5, 8.5, 14 }, { 2.7, 4, 14 } },
		.ring_ll = 1. / 2, .ring_ll_one_way = 1. / 2,
		.ll_most = { 39, 39, 87.7, 141, 282 },
		.ring_ll128 = { 20, 20, 20, 36.7, 40 },
		.tree_ll128 = { AMPERE_LL128, AMPERE_LL128, AMPERE_LL128, HOPPER_LL128, { 55.6, 31.67, 20 } },
		.tree = { VOLTA_TREE, VOLTA_TREE, AMPERE_TREE, HOPPER_TREE, { 70, 42.8, 24 } },
		.net_tree_ll128 = .9375, .net_ll_hop = 1, .alone_ll128 = .92, .alone_tree = .85,
		.alone_tree_hop = true, .net_delays = true,
		.ll128 = { false, true, true, true, true }, .ll128_through = true,
		.correction = { CORRECTION_LL,
		    { 1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1 },
		    CORRECTION_SIMPLE },
	},
};
