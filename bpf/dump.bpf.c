/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel's dump of its state says of a CPU beside what the kernel knows itself. */
#include "freqlock.bpf.h"
#include "dump.bpf.h"
#include "policy/balance.h"

void BPF_STRUCT_OPS(freqlock_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);

	scx_bpf_dump("offline=%d busy=%d running=%u", cctx->offline, fl_is_busy(cpu),
		     cctx->running);
	scx_bpf_dump(" queued_work=%llu queued_weight=%llu", queued_ns(cctx->queued_work),
		     queued_weight(cctx->queued_work));
	scx_bpf_dump(" queued=%d parked=%d", scx_bpf_dsq_nr_queued(fl_queue(cpu)),
		     scx_bpf_dsq_nr_queued(fl_park(cpu)));
	scx_bpf_dump(" stopped_ago_us=%llu", (scx_bpf_now() - cctx->last_stop) / FL_USEC);
}
