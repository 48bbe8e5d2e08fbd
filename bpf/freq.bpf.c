/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How fast each CPU is now, and what is asked of the frequency governor.
 *
 * One number per CPU with its age. Measured sources are sampled while the CPU
 * is busy (at ticks and when a task stops); while it is idle they are stale, so
 * every source but the test's decays with idle time by the recency model, and
 * without a source the model also says how speed rises under load.
 */
#include "freqlock.bpf.h"
#include "freq.bpf.h"
#include "policy/speed.h"

struct perf_map {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, FL_MAX_CPUS);
	__type(key, u32);
	__type(value, u32);
};

struct perf_map aperf_events SEC(".maps");
struct perf_map mperf_events SEC(".maps");

u32 test_speed[FL_MAX_CPUS];
u32 cpu_speed_out[FL_MAX_CPUS];
bool cpuperf_varies;

/* Before 6.16 a scheduler's programs must not even hold a call that reads counters. */
const volatile bool reads_counters;

/* At the last sample of a CPU, and the highest ratio seen recently on any CPU. */
static struct speed_counters counters_seen[FL_MAX_CPUS];
struct ratio_top ratio_top; /* static, the compiler would split it, and its type be wrong */

static u64 khz_now[FL_MAX_CPUS];
static u64 khz_max[FL_MAX_CPUS];

static void model_of(struct speed_model *m)
{
	m->ramp_ns = tunables.ramp_us * FL_USEC;
	m->hold_ns = tunables.decay_after_us * FL_USEC;
	m->decay_ns = tunables.decay_us * FL_USEC;
	m->floor = tunables.speed_floor;
}

/* Full speed is the highest that was seen. */
static u32 share_of(u64 value, u64 max)
{
	return max && value < max ? value * SPEED_ONE / max : SPEED_ONE;
}

/*
 * One function a source: @cpu's speed as it measures it, 0 if it does not. @perf is what
 * the kernel's cpufreq driver says.
 */
static u32 sample_test(s32 cpu, u64 now, u32 perf)
{
	return 0;
}

static u32 sample_recency(s32 cpu, u64 now, u32 perf)
{
	return 0;
}

static u32 sample_cpuperf(s32 cpu, u64 now, u32 perf)
{
	return perf << SPEED_SHIFT;
}

static u32 sample_tracepoint(s32 cpu, u64 now, u32 perf)
{
	return share_of(khz_now[cpu & (FL_MAX_CPUS - 1)], khz_max[cpu & (FL_MAX_CPUS - 1)]);
}

static u32 sample_aperf(s32 cpu, u64 now, u32 perf)
{
	struct bpf_perf_event_value a = {}, m = {};
	u64 ratio;

	/* A change of a task that runs elsewhere reads only the counters of the changer's CPU. */
	if ((s32)bpf_get_smp_processor_id() != cpu)
		return 0;
	if (!reads_counters ||
	    bpf_perf_event_read_value(&aperf_events, BPF_F_CURRENT_CPU, &a, sizeof(a)) ||
	    bpf_perf_event_read_value(&mperf_events, BPF_F_CURRENT_CPU, &m, sizeof(m)))
		return 0;
	ratio = counters_ratio(&counters_seen[cpu & (FL_MAX_CPUS - 1)], a.counter, m.counter);
	if (!ratio)
		return 0;
	/* Two CPUs at once may forget twice, or lose a new top, until the next sample. */
	return share_of(ratio, ratio_top_update(&ratio_top, ratio, now));
}

/* Present speed of this CPU by the source in use, 0 if it gave none. */
static u32 sample(s32 cpu, u64 now)
{
	u32 perf = scx_bpf_cpuperf_cur(cpu);

	/* The agent changes over to cpuperf where it is seen to vary. */
	if (perf < FL_FULL_SPEED && !cpuperf_varies)
		cpuperf_varies = true;

	switch (freq_source) {
#define SOURCE(name, cli, flags, help) \
	case FL_FREQ_##name:           \
		return sample_##name(cpu, now, perf);
#include "sources.h"
#undef SOURCE
	default:
		return 0;
	}
}

/* @ns of work of this CPU, up to now, go into its speed and utilisation. */
static void was_busy(struct cpu_ctx *cctx, u32 measured, u64 ns, const struct speed_model *m)
{
	cctx->speed = measured ?: speed_rise(cctx->speed, ns, m);
	cctx->done += work_of(ns, cctx->speed >> SPEED_SHIFT);
	cctx->util = util_update(cctx->util, ns, true);
}

static void was_idle(struct cpu_ctx *cctx, u64 ns, const struct speed_model *m)
{
	cctx->speed = speed_fall(cctx->speed, ns, m);
	cctx->util = util_update(cctx->util, ns, false);
}

/* What @cctx did since speed_at is taken in by now. */
static void caught_up(struct cpu_ctx *cctx, u64 now)
{
	cctx->speed_at = now;
	cctx->busy_ns = 0;
}

/* Speed 0..1024 of @cpu where its own is @speed, by its capacity and what runs on its core. */
static u32 effective(s32 cpu, u32 speed)
{
	const volatile struct cpu_topo *topo = fl_topo(cpu);
	bool shared = false;

	if (source_has(freq_source, GIVEN))
		return test_speed[cpu & (FL_MAX_CPUS - 1)];
	if (smt_present && topo->sibling >= 0)
		shared = fl_is_busy(topo->sibling);
	return speed_effective(speed, topo->capacity, shared, tunables.smt_share);
}

/* Speed of @cpu at @now, 0..1024 of the fastest CPU at its best. */
u32 fl_speed(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 at = cctx->speed_at, busy = cctx->busy_ns;
	u32 speed = cctx->speed;
	struct speed_model m;

	/* Speeds that never change need no model. */
	if (tunables.speed_floor >= FL_FULL_SPEED)
		return effective(cpu, SPEED_ONE);
	/* Another CPU's clock may be ahead by a little. */
	if (now > at) {
		model_of(&m);
		if (fl_is_busy(cpu) && now > cctx->busy_at)
			busy += now - cctx->busy_at;
		busy = lesser(busy, now - at);
		if (source_has(freq_source, MODELLED))
			speed = speed_rise(speed, busy, &m);
		speed = speed_fall(speed, now - at - busy, &m);
	}
	return effective(cpu, speed);
}

/* Ask schedutil for what this CPU's load needs. */
static void request_speed(s32 cpu, struct cpu_ctx *cctx)
{
	u32 want;

	if (!tunables.cpuperf)
		return;
	/* In steps of a sixteenth: each request costs, and most change nothing. */
	want = (util_request(cctx->util) + 63) & ~63U;
	if (want > FL_FULL_SPEED)
		want = FL_FULL_SPEED;
	if (want != cctx->asked) {
		cctx->asked = want;
		scx_bpf_cpuperf_set(cpu, want);
		fl_count(cpuperf_set);
	}
}

/* This CPU begins to run a task after a while. */
int fl_freq_catch_up(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 past = elapsed(cctx->speed_at, now), busy;
	struct speed_model m;

	model_of(&m);
	busy = lesser(cctx->busy_ns, past);
	was_busy(cctx, 0, busy, &m);
	was_idle(cctx, past - busy, &m);
	caught_up(cctx, now);
	request_speed(cpu, cctx);
	return 0;
}

/* Up to now this CPU's task runs, of @past ns since it was brought up to date. */
static void catch_up(s32 cpu, struct cpu_ctx *cctx, u64 past, u64 now)
{
	u32 measured = sample(cpu, now);
	struct speed_model m;
	u64 busy;

	if (measured)
		fl_count(freq_sample);
	model_of(&m);
	busy = lesser(cctx->busy_ns, past);
	was_idle(cctx, past - busy, &m);
	was_busy(cctx, measured, busy, &m);
	caught_up(cctx, now);
}

/*
 * This CPU's task has run until now, which is taken in if @step ns have passed since that was
 * done. Returns the speed at which it ran, 0..1024.
 */
static u32 run_until(s32 cpu, u64 now, u64 step)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 past = elapsed(cctx->speed_at, now);

	cctx->busy_ns += elapsed(cctx->busy_at, now);
	cctx->busy_at = now;
	if (past >= step)
		catch_up(cpu, cctx, past, now);
	return effective(cpu, cctx->speed);
}

/* This CPU's task stops. Returns the speed at which it ran, 0..1024. */
u32 fl_freq_stopping(s32 cpu, u64 now)
{
	return run_until(cpu, now, FREQ_STEP_NS);
}

/* This CPU's task runs on at a tick. Returns the speed at which it does, 0..1024. */
u32 fl_freq_tick(s32 cpu, u64 now)
{
	u32 speed = run_until(cpu, now, 0);

	cpu_speed_out[cpu & (FL_MAX_CPUS - 1)] = speed;
	return speed;
}

/* power:cpu_frequency; attached by the agent where it is the source. */
SEC("?tp_btf/cpu_frequency")
int BPF_PROG(freq_transition, unsigned int khz, unsigned int cpu)
{
	u32 i = cpu & (FL_MAX_CPUS - 1);

	khz_now[i] = khz;
	if (khz > khz_max[i])
		khz_max[i] = khz;
	return 0;
}
