/* The files that read a topology of NCCL or RCCL together. What such a file has is collected first, since links name
 * GPUs by their bus ids; then it becomes vertices and links.
 *
 * system@version > cpu@numaid,arch,vendor,familyid,modelid,host_hash > pci@busid,link_speed,link_width, nested >
 * gpu@dev,sm,gcn > nvlink@target,count,tclass | xgmi | c2c@bw,count; nic > net@name,speed. */
#ifndef BLINK_FORMAT_NCCL_H
#define BLINK_FORMAT_NCCL_H

#include "format/builder.h"
#include "format/doc.h"
#include "format/format.h"
#include "format/gpu_models.h"
#include "format/link_rates.h"

struct nccl_host {
	const char *hash;	/* "" where the file gives none */
	int node;		/* of the builder */
};

struct nccl_cpu {
	const Doc *at;
	int host;
	int64_t numa;
	CpuModel model;
	int vertex;		/* -1: nothing below it */
};

struct nccl_gpu {
	const Doc *at;
	const Doc *pci;		/* that has it */
	int64_t bus;
	int host, cpu, dev;
	const GpuModel *model;	/* NULL: not known */
	int vertex;
};

/* Names in a row, each once, for one note: "a, b, c, d and others". */
enum { NCCL_NAMES = 4 };

struct nccl_names {
	int n;
	const char *name[NCCL_NAMES];
	bool more;
};

struct nccl_reading {
	Ctx *ctx;
	const char *label;
	const char *gpu_model;	/* hints */
	const Doc *root;
	TopologyBuilder *b;
	int n_hosts, room_hosts;
	struct nccl_host *host;
	int n_cpus, room_cpus;
	struct nccl_cpu *cpu;
	int n_gpus, room_gpus;
	struct nccl_gpu *gpu;	/* ascending by host and dev, once all are collected */
	int n_devices;		/* PCI devices that are no bridges, GPUs or not */
	int n_classless;	/* of these, without a PCI class */
	int n_nets;		/* ports of NICs */
	bool rccl;
	bool template;		/* without GPUs and links, for NCCL to complete: devices are told by their PCI class */
	struct nccl_names unknown, slow, absent, virtual, self;	/* for notes: PCI devices, targets, interfaces, GPUs */
	int n_absent;		/* links to them */
};

/* ---- members.c ---- */

/* What an unknown device behind an NVLink is called. */
#define NCCL_UNKNOWN_BUS "fffffff:ffff:ff"

/* A bus id as a number, as NCCL compares them: its hexadecimal digits. False: not one. */
bool nccl_bus(const char *text, int64_t *out);

/* Text of an attribute; "" where there is none. */
const char *nccl_text(const Doc *element, const char *name);

/* An attribute that is a whole number, lo to hi; `otherwise` where it is missing or empty. */
Status nccl_int(struct nccl_reading *r, const Doc *element, const char *name, int64_t lo, int64_t hi, int64_t otherwise,
    int64_t *out);

/* Elements of one name below another; an empty array where there are none. */
const Doc *nccl_children(const Doc *element, const char *plural);

void nccl_add_name(struct nccl_names *names, const char *name);

/* A note about them, if there are any: "<what> a, b, c, d and others: <then>". */
void nccl_note_names(TopologyBuilder *b, const struct nccl_names *names, const char *what, const char *then);

/* Of a template: a GPU, or a network card. */
bool nccl_is_gpu(const Doc *pci);
bool nccl_is_card(const Doc *pci);

/* pci.c: CPUs with something below them; then, after GPUs, PCI switches and NICs, and all links of these. */
Status nccl_place_cpus(struct nccl_reading *r);
Status nccl_place_pci(struct nccl_reading *r);

/* links.c: NVLinks, xGMI, C2C. */
Status nccl_place_links(struct nccl_reading *r);

#endif
