/* The compiled kernel: weigh a tally for eight weight vectors at a time.
 *
 * Arrays in, arrays out; nothing is kept between calls, and what the numbers mean is known elsewhere. Cells of a tally
 * come in the order of their keys. Weight vectors go in groups of eight, their *lanes*: weights[group][unit][lane], as
 * bytes (multiplicities) or as doubles, so that one step along the cells serves as many of them as a register holds, a
 * *pack*.
 *
 * The file is compiled once per level of a processor, each with its own suffix of all names, and the loader picks one.
 * Lanes never meet: every number of a vector is made of the same operations in the same order, whatever its lane, its
 * group, the width of the registers or the number of threads. For this the file must be compiled without -ffast-math
 * and with -ffp-contract=off. `_walk.py` holds the twin in numpy, which is the definition of the numbers.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define ABI "1"
#ifndef SOURCE_HASH
#define SOURCE_HASH "unknown"
#endif

#ifdef LEVEL
#define JOINED(name, level) name##level
#define EXPANDED(name, level) JOINED(name, level)
#define NAME(name) EXPANDED(name, LEVEL)
#else
#define NAME(name) name
#endif

#define LANES 8
#if defined(__AVX512F__)
#define PACK 8
#elif defined(__AVX2__)
#define PACK 4
#else
#define PACK 2
#endif
/* Ranks are worked on in blocks that stay in the nearest cache; sums of blocks are summed, which keeps rounding small. */
#define BLOCK 64
/* Before anything is accepted the count is this instead of 0: divisions need no exception, and any weight swallows it. */
#define NOTHING DBL_MIN

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif
#define INLINE static inline __attribute__((always_inline))

enum { DONE = 0, NO_MEMORY = 1, STOPPED = 2, TOO_MANY = 3 };
enum { BYTES = 0, DOUBLES = 1 };
enum { WANT_RISK = 1, WANT_HULL = 2, WANT_GROWTH = 4 };
enum { COUNT, LOSS, FIRST_COUNT, FIRST_LOSS, RISK_AREA, LOSS_AREA, HULL_AREA, GROWTH, FIXED };
enum { COUNT_BELOW, LOSS_BELOW, COUNT_AT, LOSS_AT, RISK_AREA_BELOW, LOSS_AREA_BELOW, PER_CROSSING };

typedef double lanes __attribute__((vector_size(8 * PACK)));
typedef int64_t choice __attribute__((vector_size(8 * PACK)));
typedef uint64_t words __attribute__((vector_size(8 * PACK)));

#ifndef LEVEL
PUBLIC const char *abstain_version(void) { return ABI " " SOURCE_HASH; }

/* The highest level that this processor has: 0 for any, 1 for AVX2, 2 for AVX-512. */
PUBLIC int abstain_level(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return 2;
    if (__builtin_cpu_supports("avx2")) return 1;
#endif
    return 0;
}
#endif

/* ---- weights -------------------------------------------------------------------------------------------------- */

/* Bytes become doubles: each is the low end of a double of 2^52, which is then taken off. */
INLINE lanes of_bytes(const uint8_t *place) {
    uint64_t packed = 0;
    memcpy(&packed, place, PACK);
#if PACK == 8
    words spread = {packed, packed, packed, packed, packed, packed, packed, packed};
    spread = spread >> (words){0, 8, 16, 24, 32, 40, 48, 56} & 255;
#elif PACK == 4
    words spread = {packed, packed, packed, packed};
    spread = spread >> (words){0, 8, 16, 24} & 255;
#else
    words spread = {packed & 255, packed >> 8};
#endif
    spread |= 0x4330000000000000ULL;
    return (lanes)spread - 4503599627370496.0;
}

INLINE lanes weight_of(const void *weights, uint32_t unit, int kind) {
    if (kind == BYTES) return of_bytes((const uint8_t *)weights + (size_t)unit * LANES);
    lanes found;
    memcpy(&found, (const double *)weights + (size_t)unit * LANES, sizeof found);
    return found;
}

/* Where the weights of a pack begin, whose first vector is given. */
INLINE const void *weights_of(const void *weights, int64_t units, int64_t vector, int kind) {
    size_t place = (size_t)(vector / LANES) * (size_t)units * LANES + (size_t)(vector % LANES);
    return (const char *)weights + place * (kind == BYTES ? 1 : sizeof(double));
}

INLINE lanes chosen(choice where, lanes yes, lanes no) { return (lanes)((where & (choice)yes) | (~where & (choice)no)); }

/* One bit per lane that is chosen. */
INLINE unsigned bits_of(choice where) {
#if PACK == 8
    return (unsigned)_mm512_movepi64_mask((__m512i)where);
#elif PACK == 4
    return (unsigned)_mm256_movemask_pd((__m256d)where);
#elif defined(__x86_64__)
    return (unsigned)_mm_movemask_pd((__m128d)where);
#else
    return (unsigned)((where[0] & 1) | (where[1] & 2));
#endif
}

/* ---- the random stream ---------------------------------------------------------------------------------------- */

#define WORDS 624
#define SHIFT 397
#define FEW 200

/* MT19937: the state, its words as they are handed out, and how many of them were. */
typedef struct {
    uint32_t state[WORDS + 1];
    uint32_t ready[WORDS];
    uint32_t used;
} stream;

PUBLIC int64_t NAME(abstain_stream_size)(void) { return sizeof(stream); }

PUBLIC void NAME(abstain_seed)(stream *made, uint32_t seed) {
    for (uint32_t place = 0; place < WORDS; place++) {
        made->state[place] = seed;
        seed = 1812433253U * (seed ^ (seed >> 30)) + place + 1;
    }
    made->used = WORDS;
}

INLINE uint32_t twisted(uint32_t high, uint32_t low, uint32_t far) {
    uint32_t both = (high & 0x80000000U) | (low & 0x7fffffffU);
    return far ^ (both >> 1) ^ (-(both & 1U) & 0x9908b0dfU);
}

static void refill(stream *s) {
    uint32_t *state = s->state;
    /* The word after the last is the first as it is by then; it lets the last loop run to the end. */
    for (int i = 0; i < WORDS - SHIFT; i++) state[i] = twisted(state[i], state[i + 1], state[i + SHIFT]);
    state[WORDS] = state[0];
    for (int i = WORDS - SHIFT; i < WORDS; i++)
        state[i] = twisted(state[i], state[i + 1], state[i + SHIFT - WORDS]);
    for (int i = 0; i < WORDS; i++) {
        uint32_t y = state[i];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680U;
        y ^= (y << 15) & 0xefc60000U;
        s->ready[i] = y ^ (y >> 18);
    }
    s->used = 0;
}

/* Draw whole numbers up to `most` by masked rejection and count them, in bytes or, where those would not hold the counts,
 * in words. What is rejected is counted, too, above `most`: that is cheaper than to ask. */
INLINE void count_draws(stream *s, uint32_t most, uint32_t mask, int64_t draws, void *counts, int kind) {
    while (draws > 0) {
        if (s->used == WORDS) refill(s);
        if (kind == BYTES && draws < FEW) { /* too few for loops that are unrolled to pay */
            uint32_t used = s->used;
            for (; draws > 0 && used < WORDS; used++) {
                uint32_t word = s->ready[used] & mask;
                ++((uint8_t *)counts)[word];
                draws -= word <= most;
            }
            s->used = used;
            continue;
        }
        const uint32_t *ready = s->ready + s->used;
        int left = WORDS - (int)s->used, take = draws < left ? (int)draws : left, accepted = 0;
        /* Never more words than draws are left, so that none is taken that the next vector needs. */
        for (int i = 0; i < take; i++) accepted += (ready[i] & mask) <= most;
        for (int i = 0; i < take; i++) {
            if (kind == BYTES) ++((uint8_t *)counts)[ready[i] & mask];
            else ++((uint32_t *)counts)[ready[i] & mask];
        }
        s->used += take;
        draws -= accepted;
    }
}

static void count_bytes(stream *s, uint32_t most, uint32_t mask, int64_t draws, uint8_t *counts) {
    count_draws(s, most, mask, draws, counts, BYTES);
}

static int64_t sum_of_bytes(const uint8_t *counts, int64_t size) {
    int64_t total = 0;
    while (size > 0) {
        uint32_t part = 0;
        int64_t take = size < 1 << 16 ? size : 1 << 16;
        for (int64_t i = 0; i < take; i++) part += counts[i];
        total += part;
        counts += take;
        size -= take;
    }
    return total;
}

typedef uint8_t row16 __attribute__((vector_size(16)));
#if defined(__clang__)
#define ZIP(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ZIP(a, b, ...) __builtin_shuffle(a, b, (row16){__VA_ARGS__})
#endif

/* Lay eight rows of bytes side by side: out[unit][lane]. Half is shuffled into half, three times; rows have room for
 * whole steps of sixteen units, `out` has not. */
static void interleave(const uint8_t *rows, int64_t stride, int64_t units, uint8_t *out) {
    for (int64_t unit = 0; unit < units; unit += 16) {
        row16 now[8], next[8];
        for (int lane = 0; lane < 8; lane++) memcpy(&now[lane], rows + lane * stride + unit, 16);
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < 4; i++) {
                next[2 * i] = ZIP(now[i], now[i + 4], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
                next[2 * i + 1] = ZIP(now[i], now[i + 4], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            }
            memcpy(now, next, sizeof now);
        }
        int64_t here = units - unit < 16 ? units - unit : 16;
        memcpy(out + unit * LANES, now, (size_t)here * LANES);
    }
}

/* The same of words, which become doubles. */
static void interleave_words(const uint32_t *rows, int64_t stride, int64_t units, double *out) {
    for (int64_t unit = 0; unit < units; unit++)
        for (int lane = 0; lane < LANES; lane++) out[unit * LANES + lane] = rows[lane * stride + unit];
}

/* Count the draws of one vector; false where a count outgrew its byte. */
static int draw_row(stream *s, uint32_t units, uint32_t mask, int64_t draws, void *row, int kind) {
    if (units == 1) { /* one outcome needs no random number */
        if (kind == DOUBLES) *(uint32_t *)row = (uint32_t)draws;
        else *(uint8_t *)row = (uint8_t)draws;
    } else if (kind == DOUBLES) count_draws(s, units - 1, mask, draws, row, DOUBLES);
    else count_bytes(s, units - 1, mask, draws, row);
    return kind == DOUBLES || sum_of_bytes(row, units) == draws;
}

/* Draw `draws` of `units` clusters for each vector, as numpy's RandomState.randint(0, units) would, vector by vector. */
PUBLIC int NAME(abstain_draw)(stream *s, uint32_t units, int64_t draws, int64_t vectors, int64_t kind, void *out, const volatile int32_t *stop) {
    uint32_t mask = units - 1;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    size_t stride = ((size_t)mask + 16) / 16 * 16, size = kind == BYTES ? 1 : sizeof(uint32_t);
    char *rows = malloc(stride * LANES * size);
    int ended = rows ? DONE : NO_MEMORY;
    for (int64_t group = 0; group * LANES < vectors && !ended; group++) {
        memset(rows, 0, stride * LANES * size);
        for (int lane = 0; lane < LANES && group * LANES + lane < vectors && !ended; lane++) {
            if (*stop) ended = STOPPED;
            else if (!draw_row(s, units, mask, draws, rows + (size_t)lane * stride * size, (int)kind)) ended = TOO_MANY;
        }
        size_t done = (size_t)group * units * LANES;
        if (ended) break;
        if (kind == BYTES) interleave((uint8_t *)rows, (int64_t)stride, units, (uint8_t *)out + done);
        else interleave_words((uint32_t *)rows, (int64_t)stride, units, (double *)out + done);
    }
    free(rows);
    return ended;
}

/* ---- sums by key ---------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t keys, units, vectors, columns, cells;
    const uint32_t *unit; /* of each cell */
    const int64_t *ends;  /* where the cells of each key begin, and where the last ones end */
    const double *sums;   /* (columns, cells) */
    const void *weights;
    int64_t kind;
    double *out; /* (columns, keys, vectors) */
    const volatile int32_t *stop;
} weighing;

INLINE void weigh_columns(const weighing *w, const void *weights, int64_t vector, int64_t column, int kind, int columns) {
    const double *sums = w->sums + column * w->cells;
    for (int64_t key = 0; key < w->keys; key++) {
        lanes total[4] = {{0}};
        for (int64_t cell = w->ends[key]; cell < w->ends[key + 1]; cell++) {
            lanes weight = weight_of(weights, w->unit[cell], kind);
            for (int c = 0; c < columns; c++) total[c] += weight * sums[c * w->cells + cell];
        }
        for (int c = 0; c < columns; c++)
            memcpy(w->out + ((column + c) * w->keys + key) * w->vectors + vector, &total[c], sizeof(lanes));
    }
}

INLINE void weigh_pack(const weighing *w, int64_t vector, int kind) {
    const void *weights = weights_of(w->weights, w->units, vector, kind);
    int64_t column = 0;
    for (; column + 4 <= w->columns; column += 4) weigh_columns(w, weights, vector, column, kind, 4);
    for (; column + 2 <= w->columns; column += 2) weigh_columns(w, weights, vector, column, kind, 2);
    if (column < w->columns) weigh_columns(w, weights, vector, column, kind, 1);
}

PUBLIC int NAME(abstain_weigh)(const weighing *w) {
    for (int64_t vector = 0; vector < w->vectors; vector += PACK) {
        if (*w->stop) return STOPPED;
        if (w->kind == BYTES) weigh_pack(w, vector, BYTES);
        else weigh_pack(w, vector, DOUBLES);
    }
    return DONE;
}

/* ---- the walk along ranks ------------------------------------------------------------------------------------- */

typedef struct {
    int64_t keys, units, vectors;
    int64_t stride; /* from row to row of thresholds and results; no power of two, so that rows share no place in a cache */
    const uint32_t *unit;
    const int64_t *ends;  /* NULL where every key has one cell */
    const double *count;  /* NULL where every cell counts one */
    const double *loss;   /* of each cell; not read where there are values */
    const double *value;  /* NULL, or the loss that all rows of a key share */
    const void *weights;
    int64_t kind, wanted;
    const double *table; /* what grows with the count, at every whole count below `counts` */
    int64_t counts, thresholds;
    const double *threshold;  /* (thresholds, stride), ascending in every vector */
    const uint8_t *with_areas; /* which thresholds need what lies below them, too */
    int64_t bounds;
    const double *bound;
    double *out; /* (FIXED + bounds + PER_CROSSING * thresholds, stride) */
    const volatile int32_t *stop;
} walk;

/* The points of a lower hull, as far as it was walked. */
typedef struct {
    double *x, *y;
    int64_t size, room;
} hull;

/* A block of ranks under work: place 0 is the state before it. */
typedef struct {
    lanes count[BLOCK + 1], loss[BLOCK + 1], risk[BLOCK + 1], grown[BLOCK + 1];
    int64_t first, ranks; /* the key of place 1, and how many there are */
} block;

/* What the vectors of a pack have so far; areas are doubled, and lack the flat piece below the first working point. */
typedef struct {
    lanes risk_area, loss_area, growth;
    double next[PACK];
    int64_t crossed[PACK]; /* how many thresholds were; the first of all is to accept anything */
    double first_count[PACK], first_loss[PACK];
    hull hulls[PACK];
} state;

INLINE void sum_ranks(const walk *w, const void *weights, block *b, int kind, int single, int ones, int valued) {
    lanes count = b->count[0], loss = b->loss[0];
    for (int64_t i = 1; i <= b->ranks; i++) {
        int64_t key = b->first + i - 1;
        lanes step = {0};
        int64_t cell = single ? key : w->ends[key], end = single ? key + 1 : w->ends[key + 1];
        for (; cell < end; cell++) {
            lanes weight = weight_of(weights, w->unit[cell], kind);
            step += ones ? weight : weight * w->count[cell];
            if (!valued) loss += weight * w->loss[cell];
        }
        count += step;
        if (valued) loss += step * w->value[key];
        b->count[i] = count;
        b->loss[i] = loss;
    }
}

INLINE void sum_block(const walk *w, const void *weights, block *b, int kind) {
    if (w->value) {
        if (!w->count) sum_ranks(w, weights, b, kind, 0, 1, 1);
        else sum_ranks(w, weights, b, kind, 0, 0, 1);
    } else if (!w->ends) {
        if (!w->count) sum_ranks(w, weights, b, kind, 1, 1, 0);
        else sum_ranks(w, weights, b, kind, 1, 0, 0);
    } else {
        if (!w->count) sum_ranks(w, weights, b, kind, 0, 1, 0);
        else sum_ranks(w, weights, b, kind, 0, 0, 0);
    }
}

INLINE void add_areas(block *b, state *s, int64_t wanted) {
    lanes area = {0};
    for (int64_t i = 1; i <= b->ranks; i++)
        area += (b->count[i] - b->count[i - 1]) * (b->loss[i] + b->loss[i - 1]);
    s->loss_area += area;
    if (!(wanted & WANT_RISK)) return;
    lanes under = {0};
    for (int64_t i = 1; i <= b->ranks; i++) {
        b->risk[i] = b->loss[i] / b->count[i];
        under += (b->count[i] - b->count[i - 1]) * (b->risk[i] + b->risk[i - 1]);
    }
    s->risk_area += under;
}

/* A rank of mean loss l after k0 items of loss sum S0 adds (S0 - k0*l) * (H[k] - H[k0]). */
INLINE void add_growth(const walk *w, block *b, state *s) {
    lanes sum = {0};
    for (int64_t i = 1; i <= b->ranks; i++) {
        lanes mean;
        if (w->value) mean = (lanes){0} + w->value[b->first + i - 1];
        else mean = (b->loss[i] - b->loss[i - 1]) / (b->count[i] - b->count[i - 1] + NOTHING);
        for (int lane = 0; lane < PACK; lane++) b->grown[i][lane] = w->table[(int64_t)b->count[i][lane]];
        sum += (b->loss[i - 1] - b->count[i - 1] * mean) * (b->grown[i] - b->grown[i - 1]);
    }
    s->growth += sum;
}

INLINE void keep_bounds(const walk *w, block *b, int64_t vector) {
    for (int64_t place = 0; place < w->bounds; place++) {
        double *out = w->out + (FIXED + place) * w->stride + vector;
        lanes best;
        memcpy(&best, out, sizeof best);
        for (int64_t i = 1; i <= b->ranks; i++) best = chosen(b->risk[i] <= w->bound[place], b->count[i], best);
        memcpy(out, &best, sizeof best);
    }
}

static double real_count(double count) { return count <= 2 * NOTHING ? 0.0 : count; }

/* Write down where a lane crosses its next threshold, which it does at a place of this block; `area` holds both areas up
 * to the block. */
INLINE void cross(const walk *w, const block *b, state *s, const double *area, int64_t first, int lane, int64_t at) {
    int64_t threshold = s->crossed[lane]++ - 1, vector = first + lane;
    if (threshold < 0) {
        s->first_count[lane] = b->count[at][lane];
        s->first_loss[lane] = b->loss[at][lane];
        w->out[FIRST_COUNT * w->stride + vector] = b->count[at][lane];
        w->out[FIRST_LOSS * w->stride + vector] = b->loss[at][lane];
    } else {
        double *out = w->out + (FIXED + w->bounds + threshold * PER_CROSSING) * w->stride + vector;
        out[COUNT_AT * w->stride] = b->count[at][lane];
        out[LOSS_AT * w->stride] = b->loss[at][lane];
        if (w->with_areas[threshold]) {
            double before = real_count(b->count[at - 1][lane]), risk = 0.0, loss = 0.0;
            for (int64_t i = 1; i < at; i++) {
                double step = b->count[i][lane] - b->count[i - 1][lane];
                risk += step * (b->risk[i][lane] + b->risk[i - 1][lane]);
                loss += step * (b->loss[i][lane] + b->loss[i - 1][lane]);
            }
            out[COUNT_BELOW * w->stride] = before;
            out[LOSS_BELOW * w->stride] = b->loss[at - 1][lane];
            out[RISK_AREA_BELOW * w->stride] = 0.5 * (area[lane] + risk + (before > 0.0 ? s->first_loss[lane] : 0.0));
            out[LOSS_AREA_BELOW * w->stride] = 0.5 * (area[PACK + lane] + loss);
        }
    }
    double next = threshold + 1 < w->thresholds ? w->threshold[(threshold + 1) * w->stride + vector] : DBL_MAX;
    s->next[lane] = next > 2 * NOTHING ? next : 2 * NOTHING;
}

/* Write down all thresholds that are crossed in a block: one for each lane at a time, whose places are counted at once. */
INLINE void cross_all(const walk *w, const block *b, state *s, const double *area, int64_t first) {
    for (;;) {
        lanes next;
        memcpy(&next, s->next, sizeof next);
        unsigned left = bits_of(b->count[b->ranks] >= next);
        if (!left) return;
        choice at = {0};
        for (int64_t i = 1; i < b->ranks; i++) at -= b->count[i] < next;
        for (; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            cross(w, b, s, area, first, lane, at[lane] + 1);
        }
    }
}

/* Add a point to a lower hull; points come from left to right, and one that repeats the last is left out. */
static int push(hull *h, double x, double y) {
    int64_t n = h->size;
    if (n && h->x[n - 1] == x) return DONE;
    while (n >= 2) {
        double ax = h->x[n - 2], ay = h->y[n - 2];
        if ((h->x[n - 1] - ax) * (y - ay) - (h->y[n - 1] - ay) * (x - ax) > 0.0) break;
        n--;
    }
    if (n == h->room) {
        int64_t room = h->room ? 2 * h->room : 64;
        double *wide = realloc(h->x, sizeof(double) * (size_t)room);
        if (wide) h->x = wide;
        double *high = realloc(h->y, sizeof(double) * (size_t)room);
        if (high) h->y = high;
        if (!wide || !high) return NO_MEMORY;
        h->room = room;
    }
    h->x[n] = x;
    h->y[n] = y;
    h->size = n + 1;
    return DONE;
}

typedef struct {
    lanes slope, height;
} line;

/* The line through two points, y = slope * x + height; where they are one, through it in the slope of another line. */
INLINE line through(lanes x0, lanes y0, lanes x1, lanes y1, lanes otherwise) {
    lanes slope = chosen(x1 > x0, (y1 - y0) / (x1 - x0 + NOTHING), otherwise);
    return (line){slope, y0 - slope * x0};
}

/* Move a point to the one of a block that lies furthest below a line. */
INLINE void deepest(const block *b, line from, lanes *x, lanes *y) {
    lanes depth = *y - from.slope * *x;
    for (int64_t i = 1; i <= b->ranks; i++) {
        lanes here = b->risk[i] - from.slope * b->count[i];
        choice lower = here < depth;
        depth = chosen(lower, here, depth);
        *x = chosen(lower, b->count[i], *x);
        *y = chosen(lower, b->risk[i], *y);
    }
}

/* Give the hulls what can be a corner. A point on or above the line between two others is none, so that most of a block
 * fall to two lines: from a corner before it to the point furthest below the line to its end, and from there to the end. */
INLINE int add_points(const block *b, state *s) {
    int64_t last = b->ranks;
    lanes x0, y0, x1 = b->count[last], y1 = b->risk[last];
    for (int lane = 0; lane < PACK; lane++) {
        /* The last corner so far is merely the end of the block before, and seldom stays; the first is the first point. */
        const hull *h = &s->hulls[lane];
        int64_t from = h->size >= 2 ? h->size - 2 : 0;
        x0[lane] = h->size ? h->x[from] : s->first_count[lane];
        y0[lane] = h->size ? h->y[from] : s->first_loss[lane] / s->first_count[lane];
    }
    lanes xm = x0, ym = y0;
    line all = through(x0, y0, x1, y1, (lanes){0});
    deepest(b, all, &xm, &ym);
    line down = through(x0, y0, xm, ym, all.slope), up = through(xm, ym, x1, y1, all.slope);
    for (int64_t i = 1; i <= last; i++) {
        lanes x = b->count[i], y = b->risk[i];
        choice below = (y - down.slope * x < down.height) | (y - up.slope * x < up.height);
        choice corner = (below | (x == xm) | (x == x0)) & (x > b->count[i - 1]);
        unsigned left = i == last ? (1U << PACK) - 1 : bits_of(corner);
        for (; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            if (x[lane] > 2 * NOTHING && push(&s->hulls[lane], x[lane], y[lane])) return NO_MEMORY;
        }
    }
    return DONE;
}

static double hull_area(const hull *h) {
    double area = h->size ? 2.0 * h->x[0] * h->y[0] : 0.0;
    for (int64_t i = 1; i < h->size; i++) area += (h->x[i] - h->x[i - 1]) * (h->y[i] + h->y[i - 1]);
    return 0.5 * area;
}

static void finish(const walk *w, const block *b, const state *s, int64_t vector) {
    for (int lane = 0; lane < PACK; lane++) {
        double *out = w->out + vector + lane;
        out[COUNT * w->stride] = real_count(b->count[0][lane]);
        out[LOSS * w->stride] = b->loss[0][lane];
        out[RISK_AREA * w->stride] = 0.5 * (s->risk_area[lane] + s->first_loss[lane]);
        out[LOSS_AREA * w->stride] = 0.5 * s->loss_area[lane];
        out[HULL_AREA * w->stride] = hull_area(&s->hulls[lane]);
        out[GROWTH * w->stride] = s->growth[lane];
        for (int64_t place = 0; place < w->bounds; place++) {
            double *best = &out[(FIXED + place) * w->stride];
            *best = real_count(*best);
        }
        if (!s->crossed[lane]) out[FIRST_COUNT * w->stride] = out[FIRST_LOSS * w->stride] = 0.0;
        for (int64_t missed = s->crossed[lane] ? s->crossed[lane] - 1 : 0; missed < w->thresholds; missed++)
            for (int part = 0; part < PER_CROSSING; part++)
                out[(FIXED + w->bounds + missed * PER_CROSSING + part) * w->stride] = NAN;
    }
}

INLINE int walk_pack(const walk *w, int64_t vector, state *s, int kind) {
    const void *weights = weights_of(w->weights, w->units, vector, kind);
    block b;
    b.count[0] = (lanes){0} + NOTHING;
    b.loss[0] = b.risk[0] = (lanes){0};
    b.grown[0] = (lanes){0} + (w->wanted & WANT_GROWTH ? w->table[0] : 0.0);
    s->risk_area = s->loss_area = s->growth = (lanes){0};
    for (int64_t place = 0; place < w->bounds; place++) memset(w->out + (FIXED + place) * w->stride + vector, 0, sizeof(lanes));
    for (int lane = 0; lane < PACK; lane++) {
        s->next[lane] = 2 * NOTHING;
        s->crossed[lane] = 0;
        s->first_count[lane] = NOTHING;
        s->first_loss[lane] = 0.0;
        s->hulls[lane].size = 0;
    }
    for (b.first = 0; b.first < w->keys; b.first += BLOCK) {
        if (*w->stop) return STOPPED;
        b.ranks = w->keys - b.first < BLOCK ? w->keys - b.first : BLOCK;
        double area[2 * PACK];
        memcpy(area, &s->risk_area, sizeof(lanes));
        memcpy(area + PACK, &s->loss_area, sizeof(lanes));
        sum_block(w, weights, &b, kind);
        add_areas(&b, s, w->wanted);
        if (w->wanted & WANT_GROWTH) {
            for (int lane = 0; lane < PACK; lane++)
                if (b.count[b.ranks][lane] >= (double)w->counts) return TOO_MANY;
            add_growth(w, &b, s);
        }
        if (w->bounds) keep_bounds(w, &b, vector);
        cross_all(w, &b, s, area, vector);
        if (w->wanted & WANT_HULL && add_points(&b, s)) return NO_MEMORY;
        b.count[0] = b.count[b.ranks];
        b.loss[0] = b.loss[b.ranks];
        b.risk[0] = b.risk[b.ranks];
        b.grown[0] = b.grown[b.ranks];
    }
    finish(w, &b, s, vector);
    return DONE;
}

PUBLIC int NAME(abstain_walk)(const walk *w) {
    int ended = DONE;
    state s;
    memset(&s, 0, sizeof s);
    for (int64_t vector = 0; vector < w->vectors && !ended; vector += PACK)
        ended = w->kind == BYTES ? walk_pack(w, vector, &s, BYTES) : walk_pack(w, vector, &s, DOUBLES);
    for (int lane = 0; lane < PACK; lane++) {
        free(s.hulls[lane].x);
        free(s.hulls[lane].y);
    }
    return ended;
}
