/* The compiled kernel: evaluate cluster sums for many weight vectors at a time.
 *
 * All functions read and write arrays; nothing is kept between calls. Cells of cluster sums are sorted by key. Weight
 * vectors are processed in groups of up to 64 *lanes*: weights[group][unit][lane], as bytes (multiplicities) or as
 * doubles. Reading the weights of one unit loads one cache line, which contains all lanes of a group. Lanes are
 * processed in *packs* of as many as fit into a register.
 *
 * The file is compiled once for each supported processor level. Each level has its own suffix of all names, and the
 * loader picks one. Lanes are independent: every number of a vector is the result of the same operations in the same
 * order, regardless of its lane, its group, the register width and the number of threads. This requires compiling
 * without -ffast-math and with -ffp-contract=off. `_curves.py` and `_cluster_sums.py` contain the numpy twin, which
 * defines the numbers.
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
#if !defined(_WIN32)
#include <sched.h>
#endif

/* Vectors wider than a register are split by the compiler. Only inlined functions have such arguments. */
#pragma GCC diagnostic ignored "-Wpsabi"

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

/* A group has at most as many lanes as a cache line has bytes. */
#define WIDEST 64
#if defined(__AVX512F__)
#define PACK 8
#elif defined(__AVX2__)
#define PACK 4
#else
#define PACK 2
#endif
#define PACKS (WIDEST / PACK)
#define EVERY_LANE ((1U << PACK) - 1)
/* Ranks are processed in blocks that fit into the fastest cache. Sums of blocks are then summed, which limits rounding. */
#define BLOCK 64
/* The initial count, instead of 0, to avoid a division by 0. Adding any weight to it gives exactly that weight. */
#define NOTHING DBL_MIN

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif
#define INLINE static inline __attribute__((always_inline))

enum { DONE = 0, NO_MEMORY = 1, STOPPED = 2, TOO_MANY = 3 };
enum { BYTES = 0, DOUBLES = 1 };
enum { WANT_RISK = 1, WANT_HULL = 2, WANT_GROWTH = 4, BY_STRETCHES = 8 };
enum { COUNT, LOSS, FIRST_COUNT, FIRST_LOSS, RISK_AREA, LOSS_AREA, HULL_AREA, GROWTH, FIXED };
enum { COUNT_BELOW, LOSS_BELOW, COUNT_AT, LOSS_AT, RISK_AREA_BELOW, LOSS_AREA_BELOW, PER_CROSSING };

typedef double lanes __attribute__((vector_size(8 * PACK)));
typedef int64_t choice __attribute__((vector_size(8 * PACK)));
typedef uint64_t words __attribute__((vector_size(8 * PACK)));

#ifndef LEVEL
PUBLIC const char *abstain_version(void) { return ABI " " SOURCE_HASH; }

/* Return the highest level that this processor supports: 0 for any processor, 1 for AVX2, 2 for AVX-512. */
PUBLIC int abstain_level(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return 2;
    if (__builtin_cpu_supports("avx2")) return 1;
#endif
    return 0;
}
#endif

/* ---- weights -------------------------------------------------------------------------------------------------- */

/* Convert bytes to doubles. Without an instruction for it, each byte is put into the low bits of the double 2^52, and
 * 2^52 is subtracted. */
INLINE lanes of_bytes(const uint8_t *from) {
#if PACK == 8
    return (lanes)_mm512_cvtepi64_pd(_mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)from)));
#elif PACK == 4
    int packed;
    memcpy(&packed, from, sizeof packed);
    return (lanes)_mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(packed)));
#else
    uint16_t packed;
    memcpy(&packed, from, sizeof packed);
    words spread = {packed & 255, packed >> 8};
    spread |= 0x4330000000000000ULL;
    return (lanes)spread - 4503599627370496.0;
#endif
}

INLINE lanes weight_of(const void *weights, int64_t index, int kind) {
    if (kind == BYTES) return of_bytes((const uint8_t *)weights + index);
    lanes result;
    memcpy(&result, (const double *)weights + index, sizeof result);
    return result;
}

/* Return the address of the first weight of a lane. */
INLINE const void *weights_of(const void *weights, int64_t lane, int kind) {
    return (const char *)weights + lane * (int64_t)(kind == BYTES ? 1 : sizeof(double));
}

INLINE lanes chosen(choice where, lanes yes, lanes no) { return (lanes)((where & (choice)yes) | (~where & (choice)no)); }

INLINE lanes smaller(lanes one, lanes other) {
#if PACK == 8
    return (lanes)_mm512_min_pd((__m512d)one, (__m512d)other);
#elif PACK == 4
    return (lanes)_mm256_min_pd((__m256d)one, (__m256d)other);
#else
    return chosen(one < other, one, other);
#endif
}

/* Return one bit per selected lane. */
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

/* Return how many lanes of a group are in use. */
INLINE int lanes_used(int64_t width, int64_t vectors, int64_t group) {
    int64_t left = vectors - group * width;
    return (int)(left < width ? left : width);
}

/* A cache line, and a mask for every other byte of it. */
typedef uint64_t line __attribute__((vector_size(WIDEST)));
#define EVERY_OTHER 0x00ff00ff00ff00ffULL

/* Sum the bytes of some cells for each lane. Integer sums do not depend on the order. Even and odd bytes are summed
 * separately as 16-bit numbers, which do not overflow for 256 bytes. */
INLINE void add_bytes_of(const uint8_t *weights, int width, const uint32_t *unit, int64_t cell, int64_t end, double *total) {
    while (cell < end) {
        line even = {0}, odd = {0}, word = {0};
        int64_t until = end - cell < 256 ? end : cell + 256;
        for (; cell < until; cell++) {
            memcpy(&word, weights + (int64_t)unit[cell] * width, (size_t)width);
            even += word & EVERY_OTHER;
            odd += word >> 8 & EVERY_OTHER;
        }
        uint16_t sums[2][WIDEST / 2];
        memcpy(sums[0], &even, WIDEST);
        memcpy(sums[1], &odd, WIDEST);
        for (int lane = 0; lane < width; lane++) total[lane] += sums[lane % 2][lane / 2];
    }
}

static void add_bytes(const uint8_t *weights, int64_t width, const uint32_t *unit, int64_t cell, int64_t end, double *total) {
    if (width == 64) add_bytes_of(weights, 64, unit, cell, end, total);
    else if (width == 32) add_bytes_of(weights, 32, unit, cell, end, total);
    else if (width == 16) add_bytes_of(weights, 16, unit, cell, end, total);
    else add_bytes_of(weights, 8, unit, cell, end, total);
}

/* ---- the random stream ---------------------------------------------------------------------------------------- */

#define WORDS 624
#define SHIFT 397

/* The number of words that are generated at a time. The state is followed by a copy of its first words. */
#define STEP 16

/* The random number generator MT19937: its state and the number of used words. Several threads may draw from one stream,
 * one vector at a time, so it also has a lock and the number of vectors that were drawn. */
typedef struct {
    uint32_t state[WORDS + STEP];
    uint32_t used, locked;
    int64_t drawn;
} stream;

PUBLIC int64_t NAME(abstain_stream_size)(void) { return sizeof(stream); }

PUBLIC void NAME(abstain_seed)(stream *made, uint32_t seed) {
    for (uint32_t index = 0; index < WORDS; index++) {
        made->state[index] = seed;
        seed = 1812433253U * (seed ^ (seed >> 30)) + index + 1;
    }
    made->used = WORDS;
    made->locked = 0;
    made->drawn = 0;
}

#if defined(_WIN32)
__declspec(dllimport) int __stdcall SwitchToThread(void);
#define sched_yield SwitchToThread
#endif

/* A stream is locked only while the numbers of one or a few vectors are drawn, so threads wait only briefly. */
static void lock(stream *s) {
    while (__atomic_exchange_n(&s->locked, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(stream *s) { __atomic_store_n(&s->locked, 0, __ATOMIC_RELEASE); }

/* As wide as a register of the level, because compilers split wider vectors inefficiently. */
typedef uint32_t step __attribute__((vector_size(8 * PACK)));

/* Random numbers up to `most` by masked rejection. `words` contains the masked words of the current turn of the stream (one
 * pass over its state) and the first `made` words of the next turn; `accepted` contains the words up to `most`. */
typedef struct {
    stream *source;
    uint32_t mask, most;
    int turn, made, size, taken;
    _Alignas(64) uint32_t words[2][WORDS];
    uint32_t accepted[WORDS + 16];
} sieve;

/* Return the output word of a state word. */
INLINE step tempered(step word) {
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680U;
    word ^= (word << 15) & 0xefc60000U;
    return word ^ word >> 18;
}

/* Generate the next words of the next turn. Each is computed from the state word at its index, the following one, and
 * a distant one, which belongs to the previous turn or, if its index has wrapped around, to the new one. */
INLINE void make_words(uint32_t *restrict first, uint32_t *restrict words, int made, uint32_t mask) {
    uint32_t *state = first + made;
    const uint32_t *from = made < WORDS - SHIFT ? state + SHIFT : state + SHIFT - WORDS;
    words += made;
    for (int i = 0; i < STEP; i += 2 * PACK) {
        step word, next, far;
        memcpy(&word, state + i, sizeof word);
        memcpy(&next, state + i + 1, sizeof next);
        memcpy(&far, from + i, sizeof far);
        step odd = (step)(-(next & 1U)) & 0x9908b0dfU;
        word = far ^ (((word & 0x80000000U) | (next & 0x7fffffffU)) >> 1) ^ odd;
        memcpy(state + i, &word, sizeof word);
        word = tempered(word) & mask;
        memcpy(words + i, &word, sizeof word);
    }
    if (!made) memcpy(first + WORDS, state, STEP * sizeof *state);
}

/* Proceed to the next turn. All words of the current turn must be used before the first word of the next turn is
 * generated, because the state is overwritten. */
static void next_turn(sieve *v) {
    for (; v->made < WORDS; v->made += STEP) make_words(v->source->state, v->words[!v->turn], v->made, v->mask);
    v->turn = !v->turn;
    v->made = 0;
    v->source->used = 0;
}

#if PACK == 4
/* For each selection of eight words: the indices of the selected words in order, one byte each. */
#define BIT(m, b) ((m) >> (b) & 1U)
#define BELOW(m, b) (BIT((m) & ((1U << (b)) - 1U), 0) + BIT((m) & ((1U << (b)) - 1U), 1) + BIT((m) & ((1U << (b)) - 1U), 2) + \
                     BIT((m) & ((1U << (b)) - 1U), 3) + BIT((m) & ((1U << (b)) - 1U), 4) + BIT((m) & ((1U << (b)) - 1U), 5) + \
                     BIT((m) & ((1U << (b)) - 1U), 6))
#define INDEX(m, b) ((uint64_t)(BIT(m, b) * (b)) << 8 * BELOW(m, b))
#define INDICES(m) (INDEX(m, 1) | INDEX(m, 2) | INDEX(m, 3) | INDEX(m, 4) | INDEX(m, 5) | INDEX(m, 6) | INDEX(m, 7))
#define INDICES_4(m) INDICES(m), INDICES((m) + 1), INDICES((m) + 2), INDICES((m) + 3)
#define INDICES_16(m) INDICES_4(m), INDICES_4((m) + 4), INDICES_4((m) + 8), INDICES_4((m) + 12)
#define INDICES_64(m) INDICES_16(m), INDICES_16((m) + 16), INDICES_16((m) + 32), INDICES_16((m) + 48)
static const uint64_t indices_of[256] = {INDICES_64(0U), INDICES_64(64U), INDICES_64(128U), INDICES_64(192U)};
#endif

/* Select the accepted words among the unused words of this turn. */
static void sift(sieve *v) {
    const uint32_t *words = v->words[v->turn];
    int count = 0;
#if PACK == 8
    __m512i most = _mm512_set1_epi32((int)v->most);
    for (int i = (int)v->source->used; i < WORDS; i += 16) {
        __mmask16 there = WORDS - i < 16 ? (__mmask16)((1U << (WORDS - i)) - 1) : (__mmask16)0xffff;
        __m512i word = _mm512_maskz_loadu_epi32(there, words + i);
        __mmask16 kept = _mm512_mask_cmple_epu32_mask(there, word, most);
        _mm512_storeu_si512(v->accepted + count, _mm512_maskz_compress_epi32(kept, word));
        count += __builtin_popcount(kept);
    }
#else
    int i = (int)v->source->used;
#if PACK == 4
    __m256i most = _mm256_set1_epi32((int)v->most);
    for (; i + 8 <= WORDS; i += 8) {
        __m256i word = _mm256_loadu_si256((const __m256i *)(words + i));
        __m256i small = _mm256_cmpeq_epi32(_mm256_min_epu32(word, most), word);
        unsigned kept = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(small));
        __m256i index = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)&indices_of[kept]));
        _mm256_storeu_si256((__m256i *)(v->accepted + count), _mm256_permutevar8x32_epi32(word, index));
        count += __builtin_popcount(kept);
    }
#endif
    for (; i < WORDS; i++) {
        v->accepted[count] = words[i];
        count += words[i] <= v->most;
    }
#endif
    v->size = count;
    v->taken = 0;
}

/* Return the smallest mask 2^k - 1 that includes all numbers below `units`. */
INLINE uint32_t mask_of(uint32_t units) {
    uint32_t mask = units - 1;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    return mask;
}

static void open_sieve(sieve *v, stream *source, uint32_t units) {
    v->source = source;
    v->most = units - 1;
    v->mask = mask_of(units);
    v->turn = v->made = 0;
    for (int i = 0; i < WORDS; i += 2 * PACK) {
        step word;
        memcpy(&word, source->state + i, sizeof word);
        word = tempered(word) & v->mask;
        memcpy(v->words[0] + i, &word, sizeof word);
    }
    sift(v);
}

/* Return the next numbers, at most `wanted`, and their number. */
INLINE const uint32_t *next_numbers(sieve *v, int64_t wanted, int *got) {
    while (v->taken == v->size) {
        next_turn(v);
        sift(v);
    }
    const uint32_t *numbers = v->accepted + v->taken;
    *got = wanted < v->size - v->taken ? (int)wanted : v->size - v->taken;
    v->taken += *got;
    return numbers;
}

/* Set the position of the stream after the last used word. The next call may accept other words. */
static void close_sieve(sieve *v) {
    for (int left = v->taken; left; v->source->used++) left -= v->words[v->turn][v->source->used] <= v->most;
}

/* Return the number of counters of a row. If few words are rejected, it is cheaper to count them as well, in additional
 * counters after the units, than to remove them first. */
INLINE size_t counters_for(uint32_t units) {
    size_t all = (size_t)mask_of(units) + 1;
    return all - units < units / 10 ? all : units;
}

/* Return the distance between the rows of a group: an odd number of cache lines, so that rows do not compete for the same
 * cache sets. */
INLINE size_t row_stride(uint32_t units) { return ((counters_for(units) / 64 + 1) | 1) * 64; }

/* Count two numbers that are read together, because counting is limited by the number of reads and writes. */
INLINE void count_two(const uint32_t *numbers, uint8_t *counts) {
    uint64_t two;
    memcpy(&two, numbers, sizeof two);
    ++counts[(uint32_t)two];
    ++counts[two >> 32];
}

static void count_numbers(const uint32_t *restrict numbers, int64_t size, uint8_t *restrict counts) {
    int64_t i = 0;
    for (; i + STEP <= size; i += STEP)
        for (int j = 0; j < STEP; j += 2) count_two(numbers + i + j, counts);
    for (; i < size; i++) ++counts[numbers[i]];
}

/* Count numbers and generate words of the next turn at the same time, because counting waits for memory. Returns how many
 * numbers were counted. If `rejected` is not NULL, rejected numbers are counted there. */
INLINE int count_and_make(sieve *v, const uint32_t *restrict numbers, int size, uint8_t *restrict counts, step *rejected) {
    uint32_t *state = v->source->state, *next = v->words[!v->turn], mask = v->mask, most = v->most;
    int i = 0;
    for (; i + STEP <= size; i += STEP) {
        make_words(state, next, i, mask);
        for (int j = 0; j < STEP; j += 2) count_two(numbers + i + j, counts);
        for (int j = 0; rejected && j < STEP; j += 2 * PACK) {
            step word;
            memcpy(&word, numbers + i + j, sizeof word);
            *rejected -= (step)(word > most);
        }
    }
    v->made = i;
    return i;
}

/* Count all words of a turn, including rejected ones; returns how many are accepted. */
static int64_t count_turn(sieve *v, uint8_t *counts) {
    step rejected = {0};
    int64_t accepted = count_and_make(v, v->words[v->turn], WORDS, counts, &rejected);
    for (int lane = 0; lane < 2 * PACK; lane++) accepted -= rejected[lane];
    next_turn(v);
    return accepted;
}

/* Count the draws of one vector. Words of the next turn are generated only if they will be needed. */
static void count_bytes(sieve *v, int64_t draws, uint8_t *counts) {
    uint32_t units = v->most + 1;
    size_t size = counters_for(units);
    while (draws > 0) {
        int got;
        const uint32_t *numbers = next_numbers(v, draws, &got);
        int counted = got < draws ? count_and_make(v, numbers, got, counts, NULL) : 0;
        count_numbers(numbers + counted, got - counted, counts);
        draws -= got;
        if (size > units && draws > WORDS) {
            next_turn(v);
            while (draws > WORDS) draws -= count_turn(v, counts);
            sift(v);
        }
    }
    memset(counts + units, 0, size - units);
}

/* Copy the numbers of a vector, so that they can be counted after the stream is unlocked. */
static void copy_numbers(sieve *v, int64_t draws, uint32_t *out) {
    while (draws > 0) {
        int got;
        const uint32_t *numbers = next_numbers(v, draws, &got);
        memcpy(out, numbers, sizeof(uint32_t) * (size_t)got);
        out += got;
        draws -= got;
    }
}

/* Count draws directly in one lane of a group that is small enough to stay in the cache. */
static void count_lane(sieve *v, int64_t draws, uint8_t *counts, int64_t width) {
    while (draws > 0) {
        int got;
        const uint32_t *numbers = next_numbers(v, draws, &got);
        if (width == WIDEST)
            for (int i = 0; i < got; i++) ++counts[(size_t)numbers[i] * WIDEST];
        else
            for (int i = 0; i < got; i++) ++counts[(size_t)numbers[i] * (size_t)width];
        draws -= got;
    }
}

static void count_doubles(sieve *v, int64_t draws, double *counts, int64_t width) {
    while (draws > 0) {
        int got;
        const uint32_t *numbers = next_numbers(v, draws, &got);
        for (int i = 0; i < got; i++) counts[(size_t)numbers[i] * (size_t)width] += 1.0;
        draws -= got;
    }
}

/* Return the sum of bytes. Whole cache lines are read, and the last one is padded with zeros. */
static int64_t sum_of_bytes(const uint8_t *counts, int64_t size) {
#if PACK == 8
    __m512i total = _mm512_setzero_si512();
    for (int64_t index = 0; index < size; index += 64)
        total = _mm512_add_epi64(total, _mm512_sad_epu8(_mm512_loadu_si512(counts + index), _mm512_setzero_si512()));
    return _mm512_reduce_add_epi64(total);
#elif defined(__x86_64__)
    __m128i total = _mm_setzero_si128();
    for (int64_t index = 0; index < size; index += 16)
        total = _mm_add_epi64(total, _mm_sad_epu8(_mm_loadu_si128((const __m128i *)(counts + index)), _mm_setzero_si128()));
    return _mm_cvtsi128_si64(total) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(total, total));
#else
    int64_t total = 0;
    for (int64_t index = 0; index < size; index++) total += counts[index];
    return total;
#endif
}

typedef uint8_t row16 __attribute__((vector_size(16)));
#if defined(__clang__)
#define ZIP(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ZIP(a, b, ...) __builtin_shuffle(a, b, (row16){__VA_ARGS__})
#endif

/* Transpose eight rows of sixteen bytes into out[unit][lane], by interleaving halves three times. */
INLINE void interleave_eight(const uint8_t *rows, int64_t stride, uint8_t *out, int64_t width) {
    row16 now[8], next[8];
    for (int lane = 0; lane < 8; lane++) memcpy(&now[lane], rows + lane * stride, 16);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 4; i++) {
            next[2 * i] = ZIP(now[i], now[i + 4], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            next[2 * i + 1] = ZIP(now[i], now[i + 4], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        memcpy(now, next, sizeof now);
    }
    const uint8_t *done = (const uint8_t *)now;
    for (int64_t unit = 0; unit < 16; unit++) memcpy(out + unit * width, done + unit * 8, 8);
}

/* A group of at least this many bytes does not fit into the caches. It is written around them, which avoids reading the
 * lines that are overwritten. */
#define AROUND_CACHES (1 << 24)

#if defined(__x86_64__)
INLINE int writes_around(const uint8_t *out, int64_t size) { return size >= AROUND_CACHES && (uintptr_t)out % 16 == 0; }

INLINE void write_around(uint8_t *out, const uint8_t *tile, int64_t size) {
    for (int64_t i = 0; i < size; i += 16) _mm_stream_si128((__m128i *)(out + i), _mm_load_si128((const __m128i *)(tile + i)));
}

/* Make the values that were written around the caches visible to all threads. */
INLINE void end_writes_around(void) { _mm_sfence(); }
#else
#define writes_around(out, size) 0
#define write_around(out, tile, size) memcpy(out, tile, (size_t)(size))
#define end_writes_around()
#endif

/* Process sixteen units at a time. Rows are padded to a multiple of sixteen units, `out` is not. */
INLINE void interleave_of(const uint8_t *rows, int64_t stride, int64_t units, uint8_t *out, int64_t width, int around) {
    _Alignas(64) uint8_t tile[16 * WIDEST];
    for (int64_t unit = 0; unit < units; unit += 16, out += 16 * width) {
        int whole = units - unit >= 16;
        uint8_t *to = around || !whole ? tile : out;
        if (unit % 64 == 0) /* there are too many rows for the processor's own prefetching */
            for (int64_t lane = 0; lane < width; lane++) __builtin_prefetch(rows + lane * stride + unit + 256);
        for (int64_t lane = 0; lane < width; lane += 8) interleave_eight(rows + lane * stride + unit, stride, to + lane, width);
        if (!whole) memcpy(out, tile, (size_t)((units - unit) * width));
        else if (around) write_around(out, tile, 16 * width);
    }
}

/* Transpose the rows of a group. */
static void interleave(const uint8_t *rows, int64_t stride, int64_t units, uint8_t *out, int64_t width) {
    if (writes_around(out, units * width)) {
        interleave_of(rows, stride, units, out, width, 1);
        end_writes_around();
    } else if (width == WIDEST) interleave_of(rows, stride, units, out, WIDEST, 0);
    else interleave_of(rows, stride, units, out, width, 0);
}

/* A group of at most this many bytes is counted in its final memory. So is a group of doubles, which is rare. */
#define IN_PLACE (1 << 15)

/* Return whether all counts fit into bytes. With as many draws as units, a count of 256 has a probability of 10^-500. */
INLINE int fits_bytes(uint32_t units, int64_t draws) { return draws <= 255 || draws <= units; }

/* Count the draws of one vector in its final memory; returns 0 if a count may not fit into its byte. */
static int draw_in_place(sieve *v, uint32_t units, int64_t draws, void *out, int64_t width, int kind) {
    if (kind == DOUBLES) {
        if (units == 1) *(double *)out = (double)draws; /* a single outcome needs no random numbers */
        else count_doubles(v, draws, out, width);
        return 1;
    }
    uint8_t *counts = out;
    if (units == 1) *counts = (uint8_t)draws;
    else count_lane(v, draws, counts, width);
    if (fits_bytes(units, draws)) return 1;
    int64_t total = 0;
    for (uint32_t unit = 0; unit < units; unit++) total += counts[(size_t)unit * (size_t)width];
    return total == draws;
}

/* The number of random numbers that are drawn while a stream is locked; at least one vector. */
#define LOCKED (1 << 16)
INLINE int64_t vectors_locked(int64_t draws) { return draws > 0 && draws < LOCKED ? LOCKED / draws : 1; }

/* Return the number of bytes that the rows of a group and its copied numbers need; 0 if the group is counted in its final
 * memory. */
PUBLIC int64_t NAME(abstain_draw_buffer_size)(uint32_t units, int64_t draws, int64_t width, int64_t kind, int64_t shared) {
    if (kind == DOUBLES || (int64_t)units * width <= IN_PLACE) return 0;
    int64_t numbers = shared ? vectors_locked(draws) * draws : 0;
    return (int64_t)row_stride(units) * width + numbers * (int64_t)sizeof(uint32_t);
}

/* Draw short vectors, all of them while the stream is locked. */
static int draw_short(stream *s, uint32_t units, int64_t draws, int64_t vectors, int64_t width, int kind, char *out,
                     int64_t *number, const volatile int32_t *stop) {
    size_t size = kind == BYTES ? 1 : sizeof(double), whole = (size_t)units * (size_t)width * size;
    int ended = DONE;
    sieve v;
    lock(s);
    open_sieve(&v, s, units);
    for (int64_t group = 0; group * width < vectors && !ended; group++, out += whole) {
        int used = lanes_used(width, vectors, group);
        memset(out, 0, whole);
        for (int lane = 0; lane < used && !ended; lane++) {
            *number++ = s->drawn++;
            if (*stop) ended = STOPPED;
            else if (!draw_in_place(&v, units, draws, out + (size_t)lane * size, width, kind)) ended = TOO_MANY;
        }
    }
    close_sieve(&v);
    unlock(s);
    return ended;
}

/* Draw some long vectors. Their numbers are copied, and counted after the stream is unlocked. If the stream is not shared,
 * `numbers` is NULL, and they are counted immediately. */
static int draw_long(stream *s, uint32_t units, int64_t draws, int64_t vectors, uint32_t *numbers, uint8_t *rows, int64_t *number) {
    size_t stride = row_stride(units);
    sieve v;
    lock(s);
    open_sieve(&v, s, units);
    for (int64_t vector = 0; vector < vectors; vector++) {
        uint8_t *row = rows + (size_t)vector * stride;
        number[vector] = s->drawn++;
        if (numbers) copy_numbers(&v, draws, numbers + vector * draws);
        else count_bytes(&v, draws, memset(row, 0, stride));
    }
    close_sieve(&v);
    unlock(s);
    for (int64_t vector = 0; vector < vectors; vector++, rows += stride) {
        if (numbers) count_numbers(numbers + vector * draws, draws, memset(rows, 0, stride));
        if (!fits_bytes(units, draws) && sum_of_bytes(rows, units) != draws) return TOO_MANY;
    }
    return DONE;
}

/* Draw `draws` of `units` clusters for each vector, with the same numbers as numpy's RandomState.randint(0, units). If
 * threads share the stream, other threads may draw in between; `number` receives the index of each vector. */
PUBLIC int NAME(abstain_draw)(stream *s, uint32_t units, int64_t draws, int64_t vectors, int64_t width, int64_t kind,
                              int64_t shared, uint8_t *rows, void *out, int64_t *number, const volatile int32_t *stop) {
    size_t whole = (size_t)units * (size_t)width, stride = row_stride(units);
    if (!NAME(abstain_draw_buffer_size)(units, draws, width, kind, shared))
        return draw_short(s, units, draws, vectors, width, (int)kind, out, number, stop);
    uint32_t *numbers = shared ? (uint32_t *)(rows + stride * (size_t)width) : NULL;
    for (int64_t group = 0; group * width < vectors; group++) {
        int64_t used = lanes_used(width, vectors, group), some = vectors_locked(draws);
        memset(rows + (size_t)used * stride, 0, (size_t)(width - used) * stride);
        for (int64_t lane = 0; lane < used; lane += some) {
            if (*stop) return STOPPED;
            if (some > used - lane) some = used - lane;
            int ended = draw_long(s, units, draws, some, numbers, rows + (size_t)lane * stride, number);
            if (ended) return ended;
            number += some;
        }
        interleave(rows, (int64_t)stride, units, (uint8_t *)out + (size_t)group * whole, width);
    }
    return DONE;
}

/* ---- sums by key ---------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t keys, units, vectors, width, columns, cells;
    int64_t stride;       /* distance between the keys of the result: all vectors, padded to whole packs */
    const uint32_t *unit; /* of each cell */
    const int64_t *ends;  /* the first cell of each key, and the number of cells */
    const double *sums;   /* (columns, cells) */
    const uint8_t *ones;  /* 1 for each column that is 1 in all cells */
    const void *weights;
    int64_t kind;
    double *out; /* (columns, keys, stride) */
    const volatile int32_t *stop;
} evaluation;

/* The number of cells that are processed for one pack before the next pack, so that their weights stay in the cache. */
#define STRETCH 256

INLINE void sum_stretch(const evaluation *w, const void *weights, const double *sums, int64_t cell, int64_t end,
                          double *totals, int packs, int kind, int columns) {
    for (int pack = 0; pack < packs; pack++) {
        const void *from = weights_of(weights, pack * PACK, kind);
        lanes total[4];
        for (int c = 0; c < columns; c++) memcpy(&total[c], totals + c * WIDEST + pack * PACK, sizeof(lanes));
        for (int64_t at = cell; at < end; at++) {
            lanes weight = weight_of(from, (int64_t)w->unit[at] * w->width, kind);
            for (int c = 0; c < columns; c++) total[c] += weight * sums[c * w->cells + at];
        }
        for (int c = 0; c < columns; c++) memcpy(totals + c * WIDEST + pack * PACK, &total[c], sizeof(lanes));
    }
}

INLINE void sum_columns(const evaluation *w, int64_t group, int64_t column, int kind, int columns) {
    const double *sums = w->sums + column * w->cells;
    const void *weights = weights_of(w->weights, group * w->units * w->width, kind);
    int packs = (lanes_used(w->width, w->vectors, group) + PACK - 1) / PACK;
    int counted = kind == BYTES && columns == 1 && w->ones[column];
    for (int64_t key = 0; key < w->keys; key++) {
        double totals[4 * WIDEST];
        for (int c = 0; c < columns; c++) memset(totals + c * WIDEST, 0, WIDEST * sizeof(double));
        int64_t end = w->ends[key + 1];
        if (counted) add_bytes(weights, w->width, w->unit, w->ends[key], end, totals);
        else
            for (int64_t cell = w->ends[key]; cell < end; cell += STRETCH) {
                int64_t until = end - cell < STRETCH ? end : cell + STRETCH;
                sum_stretch(w, weights, sums, cell, until, totals, packs, kind, columns);
            }
        for (int c = 0; c < columns; c++)
            memcpy(w->out + ((column + c) * w->keys + key) * w->stride + group * w->width, totals + c * WIDEST,
                   (size_t)packs * sizeof(lanes));
    }
}

INLINE int sum_group(const evaluation *w, int64_t group, int kind) {
    int64_t column = 0;
    while (column < w->columns) {
        if (*w->stop) return STOPPED;
        int64_t left = w->columns - column;
        int ones = kind == BYTES && w->ones[column];
        if (!ones && left >= 4 && !(kind == BYTES && (w->ones[column + 1] | w->ones[column + 2] | w->ones[column + 3]))) {
            sum_columns(w, group, column, kind, 4);
            column += 4;
        } else if (!ones && left >= 2 && !(kind == BYTES && w->ones[column + 1])) {
            sum_columns(w, group, column, kind, 2);
            column += 2;
        } else sum_columns(w, group, column++, kind, 1);
    }
    return DONE;
}

PUBLIC int NAME(abstain_evaluate)(const evaluation *w) {
    int ended = DONE;
    for (int64_t group = 0; group * w->width < w->vectors && !ended; group++)
        ended = w->kind == BYTES ? sum_group(w, group, BYTES) : sum_group(w, group, DOUBLES);
    return ended;
}

/* ---- integration along the ranks ------------------------------------------------------------------------------ */

typedef struct {
    int64_t keys, units, vectors, width;
    int64_t stride; /* distance between rows of thresholds and results; no power of two, to avoid cache conflicts */
    const uint32_t *unit;
    const int64_t *ends;  /* NULL if every key has one cell */
    const double *count;  /* NULL if every cell counts one */
    const double *loss;   /* of each cell; not read if there are values */
    const double *value;  /* NULL, or the loss of all rows of each key */
    const void *weights;
    int64_t kind, wanted;
    const double *table; /* the growth function at every whole count below `counts` */
    int64_t counts, thresholds;
    const double *threshold;  /* (thresholds, stride), ascending in every vector */
    const uint8_t *with_areas; /* 1 for each threshold that needs the areas below it */
    int64_t bounds;
    const double *bound;
    double *out; /* (FIXED + bounds + PER_CROSSING * thresholds, stride) */
    const volatile int32_t *stop;
} integration;

/* The running sums of a block of ranks; index 0 is the state before the block. */
typedef struct {
    lanes count[BLOCK + 1], loss[BLOCK + 1], risk[BLOCK + 1], grown[BLOCK + 1];
    int64_t first, ranks; /* the key of index 1, and the number of ranks */
} block;

/* The sums of a pack so far. Areas are doubled and do not include the part below the first operating point. */
typedef struct {
    lanes count, loss, risk, grown;
    lanes risk_area, loss_area, growth;
    lanes first_count, first_loss; /* at the first operating point */
    int64_t next;                  /* the first threshold that some lane has not crossed */
} state;

/* The points of a lower hull so far. */
typedef struct {
    double *x, *y;
    int64_t size, capacity;
} hull;

/* A summary of each block, so that hulls can be found without a second pass over all blocks: (width, blocks + 1). */
typedef struct {
    int64_t blocks;
    double *count, *loss; /* before each block, and at the end */
    double *lowest;       /* the lowest risk in each block */
    hull coarse, hulls[WIDEST];
} outline;

/* Return the count of a rank, and add its loss to `loss`. */
INLINE lanes step_of(const integration *w, const void *weights, int64_t key, lanes *loss, int kind, int single, int ones, int valued) {
    lanes step = {0};
    int64_t cell = single ? key : w->ends[key], end = single ? key + 1 : w->ends[key + 1];
    for (; cell < end; cell++) {
        lanes weight = weight_of(weights, (int64_t)w->unit[cell] * w->width, kind);
        step += ones ? weight : weight * w->count[cell];
        if (!valued) *loss += weight * w->loss[cell];
    }
    if (valued) *loss += step * w->value[key];
    return step;
}

/* Compute the running sums of a block of ranks, and the areas below them. */
INLINE void integrate_ranks(const integration *w, const void *weights, const double *steps, block *b, state *s, int kind, int single,
                       int ones, int valued) {
    lanes count = s->count, loss = s->loss, risk = s->risk, area = {0}, under = {0};
    int with_risk = (w->wanted & WANT_RISK) != 0;
    b->count[0] = count;
    b->loss[0] = loss;
    b->risk[0] = risk;
    for (int64_t i = 1; i <= b->ranks; i++) {
        lanes before = loss, step;
        if (steps) { /* the counts are already summed for all lanes */
            memcpy(&step, steps + (i - 1) * WIDEST, sizeof step);
            loss += step * w->value[b->first + i - 1];
        } else step = step_of(w, weights, b->first + i - 1, &loss, kind, single, ones, valued);
        count += step;
        area += step * (loss + before);
        b->count[i] = count;
        b->loss[i] = loss;
        if (with_risk) {
            lanes here = loss / count;
            under += step * (here + risk);
            b->risk[i] = risk = here;
        }
    }
    s->count = count;
    s->loss = loss;
    s->risk = risk;
    s->loss_area += area;
    s->risk_area += under;
}

INLINE void integrate_block(const integration *w, const void *weights, const double *steps, block *b, state *s, int kind) {
    if (w->value) {
        if (!w->count) integrate_ranks(w, weights, steps, b, s, kind, 0, 1, 1);
        else integrate_ranks(w, weights, NULL, b, s, kind, 0, 0, 1);
    } else if (!w->ends) {
        if (!w->count) integrate_ranks(w, weights, NULL, b, s, kind, 1, 1, 0);
        else integrate_ranks(w, weights, NULL, b, s, kind, 1, 0, 0);
    } else {
        if (!w->count) integrate_ranks(w, weights, NULL, b, s, kind, 0, 1, 0);
        else integrate_ranks(w, weights, NULL, b, s, kind, 0, 0, 0);
    }
}

/* Add the growth terms: a rank of mean loss l after k0 items with loss sum S0 adds (S0 - k0*l) * (H[k] - H[k0]). Returns 0
 * if a count is beyond the table. */
INLINE int add_growth(const integration *w, block *b, state *s) {
    for (int lane = 0; lane < PACK; lane++)
        if (b->count[b->ranks][lane] >= (double)w->counts) return 0;
    lanes sum = {0};
    b->grown[0] = s->grown;
    for (int64_t i = 1; i <= b->ranks; i++) {
        lanes mean;
        if (w->value) mean = (lanes){0} + w->value[b->first + i - 1];
        else mean = (b->loss[i] - b->loss[i - 1]) / (b->count[i] - b->count[i - 1] + NOTHING);
        for (int lane = 0; lane < PACK; lane++) b->grown[i][lane] = w->table[(int64_t)b->count[i][lane]];
        sum += (b->loss[i - 1] - b->count[i - 1] * mean) * (b->grown[i] - b->grown[i - 1]);
    }
    s->grown = b->grown[b->ranks];
    s->growth += sum;
    return 1;
}

INLINE void update_bounds(const integration *w, block *b, int64_t vector) {
    for (int64_t index = 0; index < w->bounds; index++) {
        double *out = w->out + (FIXED + index) * w->stride + vector;
        lanes best;
        memcpy(&best, out, sizeof best);
        for (int64_t i = 1; i <= b->ranks; i++) best = chosen(b->risk[i] <= w->bound[index], b->count[i], best);
        memcpy(out, &best, sizeof best);
    }
}

/* Both areas, up to the last rank of a block whose count is below the next threshold. */
typedef struct {
    lanes risk, loss;
} areas;

INLINE areas areas_below(const block *b, lanes next, areas before) {
    areas inside = {{0}, {0}};
    for (int64_t i = 1; i < b->ranks; i++) {
        lanes step = chosen(b->count[i] < next, b->count[i] - b->count[i - 1], (lanes){0});
        inside.risk += step * (b->risk[i] + b->risk[i - 1]);
        inside.loss += step * (b->loss[i] + b->loss[i - 1]);
    }
    return (areas){before.risk + inside.risk, before.loss + inside.loss};
}

/* Return the values at a separate index for each lane. */
INLINE lanes gather(const lanes *values, choice index) {
#if PACK == 8
    return (lanes)_mm512_i64gather_pd((__m512i)(index * PACK + (choice){0, 1, 2, 3, 4, 5, 6, 7}), (const double *)values, 8);
#else
    lanes result;
    for (int lane = 0; lane < PACK; lane++) result[lane] = values[index[lane]][lane];
    return result;
#endif
}

/* Return the first index of a block whose count reaches `next`, for lanes whose last count does. */
INLINE choice index_reaching(const block *b, lanes next) {
    if (b->ranks < BLOCK) { /* the last block, which may be short */
        choice index = {0};
        for (int64_t i = 1; i < b->ranks; i++) index -= b->count[i] < next;
        return index + 1;
    }
    choice index = {0};
    for (int64_t i = 8; i < BLOCK; i += 8) index -= b->count[i] < next;
    index *= 8; /* the last of these indices with a count below `next`; the result is one of the following eight */
    for (int step = 4; step; step /= 2) index -= (gather(b->count, index + step) < next) * step;
    return index + 1;
}

/* Write the values of some lanes. */
INLINE void put(double *out, choice where, lanes values) {
    lanes old;
    memcpy(&old, out, sizeof old);
    old = chosen(where, values, old);
    memcpy(out, &old, sizeof old);
}

/* Write the sums at which some lanes cross a threshold. */
INLINE void cross(const integration *w, const block *b, const state *s, areas before, int64_t threshold, lanes row, choice here,
                  int64_t vector) {
    double *out = w->out + (FIXED + w->bounds + threshold * PER_CROSSING) * w->stride + vector;
    choice index = index_reaching(b, row);
    put(out + COUNT_AT * w->stride, here, gather(b->count, index));
    put(out + LOSS_AT * w->stride, here, gather(b->loss, index));
    if (!w->with_areas[threshold]) return;
    areas below = areas_below(b, row, before);
    lanes count = gather(b->count, index - 1);
    choice any = count > 2 * NOTHING;
    put(out + COUNT_BELOW * w->stride, here, chosen(any, count, (lanes){0}));
    put(out + LOSS_BELOW * w->stride, here, gather(b->loss, index - 1));
    put(out + RISK_AREA_BELOW * w->stride, here, 0.5 * (below.risk + chosen(any, s->first_loss, (lanes){0})));
    put(out + LOSS_AREA_BELOW * w->stride, here, 0.5 * below.loss);
}

/* Return the counts at which a threshold is crossed. A threshold of 0 is crossed by the first rank with any weight. */
INLINE lanes threshold_counts(const integration *w, int64_t threshold, int64_t vector) {
    lanes row, least = (lanes){0} + 2 * NOTHING;
    memcpy(&row, w->threshold + threshold * w->stride + vector, sizeof row);
    return chosen(row > least, row, least);
}

/* Return the next threshold, from `threshold` on, that some lane crosses between two counts, and which lanes do; `thresholds`
 * if there is none. Thresholds ascend, so the first one that no lane reaches ends the search. */
INLINE int64_t next_crossed(const integration *w, lanes start, lanes end, int64_t threshold, int64_t vector, choice *here) {
    for (; threshold < w->thresholds; threshold++) {
        lanes row = threshold_counts(w, threshold, vector);
        choice reached = end >= row;
        if (!bits_of(reached)) break;
        *here = reached & (start < row);
        if (bits_of(*here)) return threshold;
    }
    return w->thresholds;
}

/* Write all thresholds that are crossed in a block: those that its last count reaches and the count before it does not. */
INLINE void cross_all(const integration *w, const block *b, state *s, areas before, int64_t vector) {
    lanes start = b->count[0], end = b->count[b->ranks], least = (lanes){0} + 2 * NOTHING;
    choice begins = (start < least) & (end >= least), here;
    if (bits_of(begins)) {
        choice index = index_reaching(b, least);
        s->first_count = chosen(begins, gather(b->count, index), s->first_count);
        s->first_loss = chosen(begins, gather(b->loss, index), s->first_loss);
    }
    int64_t threshold = s->next;
    while ((threshold = next_crossed(w, start, end, threshold, vector, &here)) < w->thresholds) {
        cross(w, b, s, before, threshold, threshold_counts(w, threshold, vector), here, vector);
        threshold++;
    }
    while (s->next < w->thresholds && bits_of(end >= threshold_counts(w, s->next, vector)) == EVERY_LANE) s->next++;
}

/* ---- the lower hull -------------------------------------------------------------------------------------------- */

/* Add a point to a lower hull. Points are added from left to right; a repeated point is ignored. */
static int push(hull *h, double x, double y) {
    int64_t n = h->size;
    if (n && h->x[n - 1] == x) return DONE;
    while (n >= 2) {
        double ax = h->x[n - 2], ay = h->y[n - 2];
        if ((h->x[n - 1] - ax) * (y - ay) - (h->y[n - 1] - ay) * (x - ax) > 0.0) break;
        n--;
    }
    if (n == h->capacity) {
        int64_t capacity = h->capacity ? 2 * h->capacity : 64;
        double *wide = realloc(h->x, sizeof(double) * (size_t)capacity);
        if (wide) h->x = wide;
        double *high = realloc(h->y, sizeof(double) * (size_t)capacity);
        if (high) h->y = high;
        if (!wide || !high) return NO_MEMORY;
        h->capacity = capacity;
    }
    h->x[n] = x;
    h->y[n] = y;
    h->size = n + 1;
    return DONE;
}

static double hull_area(const hull *h) {
    double area = h->size ? 2.0 * h->x[0] * h->y[0] : 0.0;
    for (int64_t i = 1; i < h->size; i++) area += (h->x[i] - h->x[i - 1]) * (h->y[i] + h->y[i - 1]);
    return 0.5 * area;
}

typedef struct {
    lanes slope, height;
} straight;

/* Return the line through two points, y = slope * x + height; if they are the same point, the line has the other slope. */
INLINE straight through(lanes x0, lanes y0, lanes x1, lanes y1, lanes otherwise) {
    lanes slope = chosen(x1 > x0, (y1 - y0) / (x1 - x0 + NOTHING), otherwise);
    return (straight){slope, y0 - slope * x0};
}

/* Replace a point by the point of a block that is furthest below a line. */
INLINE void deepest(const block *b, straight from, lanes *x, lanes *y) {
    lanes depth = *y - from.slope * *x;
    for (int64_t i = 1; i <= b->ranks; i++) {
        lanes here = b->risk[i] - from.slope * b->count[i];
        choice lower = here < depth;
        depth = chosen(lower, here, depth);
        *x = chosen(lower, b->count[i], *x);
        *y = chosen(lower, b->risk[i], *y);
    }
}

/* For few ranks: add the points of a block that may be corners to the hulls. A point on or above the line between two other
 * points is not a corner. Two lines exclude most points of a block: from a corner before the block to the point that is
 * furthest below the line to its end, and from that point to the end. */
INLINE int add_points(const block *b, const state *s, hull *hulls) {
    int64_t last = b->ranks;
    lanes x0, y0, x1 = b->count[last], y1 = b->risk[last];
    for (int lane = 0; lane < PACK; lane++) {
        /* The last corner so far is the end of the previous block and rarely remains; the first is the first point. */
        const hull *h = &hulls[lane];
        int64_t from = h->size >= 2 ? h->size - 2 : 0;
        x0[lane] = h->size ? h->x[from] : s->first_count[lane];
        y0[lane] = h->size ? h->y[from] : s->first_loss[lane] / s->first_count[lane];
    }
    lanes xm = x0, ym = y0;
    straight all = through(x0, y0, x1, y1, (lanes){0});
    deepest(b, all, &xm, &ym);
    straight down = through(x0, y0, xm, ym, all.slope), up = through(xm, ym, x1, y1, all.slope);
    for (int64_t i = 1; i <= last; i++) {
        lanes x = b->count[i], y = b->risk[i];
        choice below = (y - down.slope * x < down.height) | (y - up.slope * x < up.height);
        choice corner = (below | (x == xm) | (x == x0)) & (x > b->count[i - 1]);
        unsigned left = i == last ? EVERY_LANE : bits_of(corner);
        for (; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            if (x[lane] > 2 * NOTHING && push(&hulls[lane], x[lane], y[lane])) return NO_MEMORY;
        }
    }
    return DONE;
}

/* A piece of a hull, between two of its points. */
typedef struct {
    int64_t at;
    double x, y, slope;
} piece;

static piece piece_at(const hull *h, int64_t at) {
    piece p = {at, h->x[at], h->y[at], 0.0};
    if (at + 1 < h->size) p.slope = (h->y[at + 1] - p.y) / (h->x[at + 1] - p.x);
    return p;
}

/* Return the height of a hull at x, which must not be left of its first point or of an earlier x. */
INLINE double height_at(const hull *h, double x, piece *p) {
    while (p->at + 2 < h->size && h->x[p->at + 1] < x) *p = piece_at(h, p->at + 1);
    return p->y + p->slope * (x - p->x);
}

/* Add the points of a block that are below the coarse hull to the hull of one lane. Their sums are computed again. */
static int add_block(const integration *w, outline *o, hull *h, const void *weights, int64_t first, double count, double loss, piece p,
                     int kind) {
    int64_t end = w->keys - first < BLOCK ? w->keys : first + BLOCK;
    for (int64_t key = first; key < end; key++) {
        double step = 0.0;
        int64_t cell = w->ends ? w->ends[key] : key, until = w->ends ? w->ends[key + 1] : key + 1;
        for (; cell < until; cell++) {
            int64_t index = (int64_t)w->unit[cell] * w->width;
            double weight = kind == BYTES ? ((const uint8_t *)weights)[index] : ((const double *)weights)[index];
            step += w->count ? weight * w->count[cell] : weight;
            if (!w->value) loss += weight * w->loss[cell];
        }
        if (w->value) loss += step * w->value[key];
        count += step;
        if (step <= 0.0) continue;
        double risk = loss / count;
        int below = count < o->coarse.x[0] || risk < height_at(&o->coarse, count, &p);
        if (below && push(h, count, risk)) return NO_MEMORY;
    }
    return DONE;
}

/* For many ranks: compute a coarse hull first, of at most this many ends of blocks. Most blocks are completely above it. */
#define COARSE 512

static int coarse_hull(outline *o, int64_t lane) {
    const double *count = o->count + lane * (o->blocks + 1), *loss = o->loss + lane * (o->blocks + 1);
    int64_t every = o->blocks / COARSE + 1;
    o->coarse.size = 0;
    for (int64_t i = every; i < o->blocks + every; i += every) {
        int64_t at = i < o->blocks ? i : o->blocks;
        if (count[at] <= 2 * NOTHING) continue;
        if (push(&o->coarse, count[at], loss[at] / count[at])) return NO_MEMORY;
    }
    return DONE;
}

/* Compute the hull of one lane from the points below the coarse hull and the corners of the coarse hull. */
static int hull_of_lane(const integration *w, outline *o, const void *weights, int64_t lane, int kind) {
    const double *count = o->count + lane * (o->blocks + 1), *loss = o->loss + lane * (o->blocks + 1);
    const double *lowest = o->lowest + lane * (o->blocks + 1);
    if (coarse_hull(o, lane)) return NO_MEMORY;
    const hull *coarse = &o->coarse;
    if (!coarse->size) return DONE;
    piece here = piece_at(coarse, 0);
    double height = coarse->y[0];
    int64_t corner = 0;
    for (int64_t i = 0; i < o->blocks; i++) {
        double x0 = count[i], x1 = count[i + 1];
        /* Left of its first point the coarse hull is not defined. Otherwise it is highest at an end of the block. */
        piece before = here;
        double highest = height;
        if (x1 >= coarse->x[0]) height = height_at(coarse, x1, &here);
        if (height > highest) highest = height;
        if (x0 < coarse->x[0] || lowest[i] < highest)
            if (add_block(w, o, &o->hulls[lane], weights, i * BLOCK, x0, loss[i], before, kind)) return NO_MEMORY;
        if (corner < coarse->size && coarse->x[corner] == x1) {
            if (push(&o->hulls[lane], x1, coarse->y[corner])) return NO_MEMORY;
            corner++;
        }
    }
    return DONE;
}

/* Store the summary of a block. */
INLINE void store_outline(outline *o, const block *b, int64_t first) {
    lanes lowest = b->risk[1];
    for (int64_t i = 2; i <= b->ranks; i++) lowest = smaller(b->risk[i], lowest);
    int64_t index = first * (o->blocks + 1) + b->first / BLOCK;
    for (int lane = 0; lane < PACK; lane++, index += o->blocks + 1) {
        o->count[index] = b->count[0][lane];
        o->loss[index] = b->loss[0][lane];
        o->lowest[index] = lowest[lane];
        /* The entry after the last block is its end. */
        o->count[index + 1] = b->count[b->ranks][lane];
        o->loss[index + 1] = b->loss[b->ranks][lane];
    }
}

/* Up to this many ranks, hulls are computed during the pass. For more ranks a coarse hull is faster. */
#define FEW_RANKS 4096

static int open_outline(const integration *w, outline *o) {
    if (!(w->wanted & WANT_HULL) || w->keys <= FEW_RANKS) return DONE;
    o->blocks = (w->keys + BLOCK - 1) / BLOCK;
    size_t size = ((size_t)o->blocks + 1) * (size_t)w->width;
    o->count = malloc(3 * size * sizeof(double));
    if (!o->count) return NO_MEMORY;
    o->loss = o->count + size;
    o->lowest = o->loss + size;
    return DONE;
}

static void close_outline(outline *o) {
    free(o->count);
    free(o->coarse.x);
    free(o->coarse.y);
    for (int lane = 0; lane < WIDEST; lane++) {
        free(o->hulls[lane].x);
        free(o->hulls[lane].y);
    }
}

INLINE int add_to_hulls(outline *o, const block *b, const state *s, int64_t first) {
    if (!o->blocks) return add_points(b, s, o->hulls + first);
    store_outline(o, b, first);
    return DONE;
}

static int finish_hulls(const integration *w, outline *o, const void *weights, int64_t first, int used, int kind) {
    for (int lane = 0; lane < used; lane++) {
        if (*w->stop) return STOPPED;
        if (o->blocks && hull_of_lane(w, o, weights_of(weights, lane, kind), lane, kind)) return NO_MEMORY;
        w->out[HULL_AREA * w->stride + first + lane] = hull_area(&o->hulls[lane]);
        o->hulls[lane].size = 0;
    }
    return DONE;
}

/* ---- sums over stretches of ranks ------------------------------------------------------------------------------- */

/* If every rank is one row and losses are small whole numbers, the risks of a resample are summed in stretches of ranks once
 * the count is large. Let K and S be the count and the loss sum before a stretch, and let e and s be the amounts that its ranks
 * add to M = K + CENTRE and to S. A risk is (S + s) / (M + e), and 1 / (M + e) = (1 - t + t^2 - t^3 + t^4 ...) / M with
 * t = e / M. The area is therefore computed from the sums of v e^m and v s e^m, where v is the width of a rank and the next one
 * together. These are exact sums of small whole numbers, for sixteen lanes at a time. Powers up to the third are used; t^4 is
 * replaced by its best (Chebyshev) approximation for |t| <= NEAR, so the relative error of a risk is at most 2e-13. For
 * |t| <= NEARER, the same holds with powers up to the second and the best approximation of t^3. */
#define RUN 16
#define CENTRE 12
#define NEAR (1.0 / 1024)
#define NEARER (1.0 / 12288)
/* From this count on, the first rank of a stretch is within NEAR of its centre. */
#define FAR (CENTRE / NEAR)
/* The largest count of a stretch and the largest loss of a row for which no 16-bit number overflows: e^3, v s, sum of v s. */
#define WIDE 43
#define WORST 7 /* also in `Cells.grades` */

#define TOGETHER 16
typedef uint16_t small __attribute__((vector_size(2 * TOGETHER)));
typedef int32_t wide __attribute__((vector_size(2 * TOGETHER)));
/* The sums of a stretch for each lane. */
typedef struct {
    small steps, first, lost, v_s;
    int32_t v_s_e[3][TOGETHER], v_e[2][TOGETHER]; /* by powers of e, from the first; from the second */
} stretch;

INLINE small widened(const uint8_t *bytes) {
#if PACK >= 4
    return (small)_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)bytes));
#else
    small result;
    for (int lane = 0; lane < TOGETHER; lane++) result[lane] = bytes[lane];
    return result;
#endif
}

/* Interleave two ranks: lanes 0 to 3 and 8 to 11, or the others. */
#if defined(__clang__)
#define PAIRS(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PAIRS(a, b, ...) __builtin_shuffle(a, b, (small){__VA_ARGS__})
#endif
INLINE small pairs(const small *both, int half) {
    if (half) return PAIRS(both[0], both[1], 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31);
    return PAIRS(both[0], both[1], 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27);
}

/* Return the sum of the products of both ranks. */
INLINE wide products(small one, small other) {
#if PACK >= 4
    return (wide)_mm256_madd_epi16((__m256i)one, (__m256i)other);
#else
    wide result;
    for (int i = 0; i < TOGETHER / 2; i++)
        result[i] = (int16_t)one[2 * i] * (int16_t)other[2 * i] + (int16_t)one[2 * i + 1] * (int16_t)other[2 * i + 1];
    return result;
#endif
}

/* Write sums of pairs in the order of lanes. */
INLINE void store_pairs(int32_t *out, const wide *both) {
    for (int part = 0; part < 4; part++) memcpy(out + 4 * part, (const char *)&both[part % 2] + 16 * (part / 2), 16);
}

/* Compute the sums of a stretch from its weights (WIDEST bytes per rank) and losses: the sums with powers of e up to the
 * second, those with the third, or all of them. */
INLINE void sum_powers(const uint8_t *weights, const uint16_t *loss, stretch *out, int second, int third) {
    small step = widened(weights), e = (small){0} - CENTRE, s = {0}, total = {0}, first = step;
    wide v_s_e[3][2] = {{{0}}}, v_e[2][2] = {{{0}}};
    for (int rank = 0; rank < RUN; rank += 2) {
        small v[2], v_s[2], power[3][2];
        for (int i = 0; i < 2; i++) {
            small next = rank + i + 1 < RUN ? widened(weights + (rank + i + 1) * WIDEST) : (small){0};
            e += step;
            s += step * loss[rank + i];
            v[i] = step + next;
            v_s[i] = v[i] * s;
            total += v_s[i];
            power[0][i] = e;
            power[1][i] = e * e;
            power[2][i] = e * e * e;
            step = next;
        }
        for (int half = 0; half < 2; half++) {
            small width = pairs(v, half), lost = pairs(v_s, half);
            for (int m = second ? 0 : 2; m < (third ? 3 : 2); m++) {
                small raised = pairs(power[m], half);
                v_s_e[m][half] += products(lost, raised);
                if (m) v_e[m - 1][half] += products(width, raised);
            }
        }
    }
    for (int m = second ? 0 : 2; m < (third ? 3 : 2); m++) {
        store_pairs(out->v_s_e[m], v_s_e[m]);
        if (m) store_pairs(out->v_e[m - 1], v_e[m - 1]);
    }
    out->first = first;
    out->steps = e + CENTRE;
    out->lost = s;
    out->v_s = total;
}

/* Return whether a stretch counts at most `most` in every lane. */
INLINE int within(const stretch *r, double most) {
    small over = (small)(r->steps > (uint16_t)(most < WIDE ? most : WIDE));
    uint64_t parts[sizeof over / 8], any = 0;
    memcpy(parts, &over, sizeof over);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) any |= parts[i];
    return !any;
}

/* Compute the sums of the stretches of a block, for lanes with a count of at least `least` before it. Third powers are computed only
 * if they are needed, and separately, because most processors have too few registers for all sums. */
INLINE void sum_block(const uint8_t *weights, const uint16_t *loss, double least, stretch *block) {
    double most = (least + CENTRE) * NEARER; /* the distance from the centre up to which second powers are enough */
    for (int i = 0; i < BLOCK / RUN; i++, weights += RUN * WIDEST, loss += RUN) {
        if (most < CENTRE) sum_powers(weights, loss, &block[i], 1, 1);
        else {
            sum_powers(weights, loss, &block[i], 1, 0);
            if (!within(&block[i], CENTRE + most)) sum_powers(weights, loss, &block[i], 0, 1);
        }
    }
}

INLINE lanes of_ints(const int32_t *from) {
#if PACK == 8
    return (lanes)_mm512_cvtepi32_pd(_mm256_loadu_si256((const __m256i *)from));
#elif PACK == 4
    return (lanes)_mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)from));
#else
    return (lanes){from[0], from[1]};
#endif
}

INLINE lanes of_shorts(const small *values, int lane) {
    const uint16_t *from = (const uint16_t *)values + lane;
#if PACK == 8
    return (lanes)_mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)));
#elif PACK == 4
    return (lanes)_mm256_cvtepi32_pd(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)from)));
#else
    return (lanes){from[0], from[1]};
#endif
}

/* The state after a block, for the lanes that were integrated by stretches. */
typedef struct {
    choice done;
    lanes count, loss, risk_area, loss_area;
} passed;

/* Return the smallest count of the lanes that are summed together. */
INLINE double least_count(const state *s, int packs) {
    lanes least = s->count;
    for (int pack = 1; pack < packs && pack < TOGETHER / PACK; pack++) least = smaller(s[pack].count, least);
    double result = least[0];
    for (int lane = 1; lane < PACK; lane++) result = least[lane] < result ? least[lane] : result;
    return result;
}

/* Integrate a block by the sums of its stretches. Lanes that are not `done` must be integrated rank by rank: their count is
 * too small, or a stretch counts too much, or a threshold is inside the block. No lane depends on another. */
INLINE passed integrate_stretches(const integration *w, const stretch *block, int lane, const state *s, int64_t vector) {
    lanes count = s->count, loss = s->loss, area = {0}, under = {0};
    choice done = s->count >= FAR;
    for (int i = 0; i < BLOCK / RUN; i++) {
        const stretch *r = &block[i];
        lanes steps = of_shorts(&r->steps, lane), first = of_shorts(&r->first, lane), middle = count + CENTRE;
        done &= (steps <= WIDE) & (steps - CENTRE <= middle * NEAR);
        lanes x = 1.0 / middle;
        /* The width of the point before the first rank, at -CENTRE, is the first step. */
        lanes v_e2 = of_ints(r->v_e[0] + lane) + first * (CENTRE * CENTRE);
        lanes even = loss * (2.0 * steps) + of_shorts(&r->v_s, lane);
        lanes once = loss * (steps * (steps - 2.0 * CENTRE)) + of_ints(r->v_s_e[0] + lane);
        lanes twice = loss * v_e2 + of_ints(r->v_s_e[1] + lane);
        lanes reach = middle * NEARER, here = {0};
        choice second = (reach >= CENTRE) & (reach >= steps - CENTRE);
        if (bits_of(second)) here = x * (even - x * ((1.0 + 0.75 * NEARER * NEARER) * once - x * twice));
        if (bits_of(second) != EVERY_LANE) {
            lanes v_e3 = of_ints(r->v_e[1] + lane) - first * (CENTRE * CENTRE * CENTRE);
            lanes thrice = loss * v_e3 + of_ints(r->v_s_e[2] + lane);
            lanes third = x * ((1.0 - NEAR * NEAR * NEAR * NEAR / 8) * even -
                               x * (once - x * ((1.0 + NEAR * NEAR) * twice - x * thrice)));
            here = chosen(second, here, third);
        }
        under += here;
        area += even;
        count += steps;
        loss += of_shorts(&r->lost, lane);
    }
    choice here;
    int64_t threshold = s->next;
    for (; (threshold = next_crossed(w, s->count, count, threshold, vector, &here)) < w->thresholds; threshold++) done &= ~here;
    return (passed){done, count, loss, s->risk_area + under, s->loss_area + area};
}

/* Set the state of the lanes that were integrated by stretches. */
INLINE void take_lanes(state *s, const passed *p) {
    s->count = chosen(p->done, p->count, s->count);
    s->loss = chosen(p->done, p->loss, s->loss);
    s->risk = chosen(p->done, p->loss / p->count, s->risk);
    s->risk_area = chosen(p->done, p->risk_area, s->risk_area);
    s->loss_area = chosen(p->done, p->loss_area, s->loss_area);
}

/* ---- integration of a group ------------------------------------------------------------------------------------ */

static void begin(const integration *w, state *s, int64_t vector) {
    s->count = (lanes){0} + NOTHING;
    s->loss = s->risk = s->risk_area = s->loss_area = s->growth = (lanes){0};
    s->grown = (lanes){0} + (w->wanted & WANT_GROWTH ? w->table[0] : 0.0);
    for (int64_t index = 0; index < w->bounds; index++) memset(w->out + (FIXED + index) * w->stride + vector, 0, sizeof(lanes));
    s->next = 0;
    s->first_count = (lanes){0} + NOTHING;
    s->first_loss = (lanes){0};
}

/* Return a count, with 0 instead of the initial value NOTHING. */
INLINE lanes real_count(lanes count) { return chosen(count > 2 * NOTHING, count, (lanes){0}); }

INLINE void put_all(const integration *w, int64_t row, int64_t vector, lanes values) {
    memcpy(w->out + row * w->stride + vector, &values, sizeof values);
}

INLINE void finish(const integration *w, const state *s, int64_t vector) {
    put_all(w, COUNT, vector, real_count(s->count));
    put_all(w, LOSS, vector, s->loss);
    put_all(w, FIRST_COUNT, vector, real_count(s->first_count));
    put_all(w, FIRST_LOSS, vector, s->first_loss);
    put_all(w, RISK_AREA, vector, 0.5 * (s->risk_area + s->first_loss));
    put_all(w, LOSS_AREA, vector, 0.5 * s->loss_area);
    put_all(w, GROWTH, vector, s->growth);
    for (int64_t index = FIXED; index < FIXED + w->bounds; index++) {
        lanes best;
        memcpy(&best, w->out + index * w->stride + vector, sizeof best);
        put_all(w, index, vector, real_count(best));
    }
    for (int64_t threshold = s->next; threshold < w->thresholds; threshold++) {
        choice missed = ~(s->count >= threshold_counts(w, threshold, vector));
        for (int part = 0; part < PER_CROSSING; part++)
            put(w->out + (FIXED + w->bounds + threshold * PER_CROSSING + part) * w->stride + vector, missed, (lanes){0} + NAN);
    }
}

/* The cells of a later block whose weights are prefetched, because they are scattered in memory. */
#define PREFETCH_BLOCKS 2
typedef struct {
    int64_t next, end, part;
} prefetch;

INLINE prefetch plan_prefetch(const integration *w, int64_t first, int packs) {
    if (first >= w->keys) return (prefetch){0, 0, 0};
    int64_t last = w->keys - first < BLOCK ? w->keys : first + BLOCK;
    int64_t from = w->ends ? w->ends[first] : first, cells = (w->ends ? w->ends[last] : last) - from;
    if (cells > 2 * BLOCK) cells = 2 * BLOCK;
    return (prefetch){from, from + cells, (cells + packs - 1) / packs};
}

/* Prefetch a part of the weights before each pack, because a processor handles only few prefetches at a time. */
INLINE void prefetch_part(const integration *w, const void *weights, prefetch *a, int kind) {
    int64_t end = a->end - a->next < a->part ? a->end : a->next + a->part;
    for (; a->next < end; a->next++) __builtin_prefetch(weights_of(weights, (int64_t)w->unit[a->next] * w->width, kind));
}

/* Copy the weights and losses of a block into contiguous memory for summing. */
INLINE void copy_cells(const integration *w, const uint8_t *weights, int width, int64_t first, uint8_t *near, uint16_t *loss) {
    for (int64_t i = 0; i < BLOCK; i++) {
        memcpy(near + i * WIDEST, weights + (int64_t)w->unit[first + i] * width, (size_t)width);
        loss[i] = (uint16_t)w->loss[first + i];
    }
}

static void copy_block(const integration *w, const uint8_t *weights, int64_t first, uint8_t *near, uint16_t *loss) {
    if (w->width == 64) copy_cells(w, weights, 64, first, near, loss);
    else if (w->width == 32) copy_cells(w, weights, 32, first, near, loss);
    else if (w->width == 16) copy_cells(w, weights, 16, first, near, loss);
    else copy_cells(w, weights, 8, first, near, loss);
}

/* Integrate a block rank by rank for one pack. */
INLINE int integrate_by_rank(const integration *w, const void *weights, const double *steps, block *b, state *s, outline *o, int64_t first, int pack,
                     int kind) {
    areas before = {s->risk_area, s->loss_area};
    integrate_block(w, weights_of(weights, pack * PACK, kind), steps ? steps + pack * PACK : NULL, b, s, kind);
    if (w->wanted & WANT_GROWTH && !add_growth(w, b, s)) return TOO_MANY;
    if (w->bounds) update_bounds(w, b, first + pack * PACK);
    cross_all(w, b, s, before, first + pack * PACK);
    if (w->wanted & WANT_HULL && add_to_hulls(o, b, s, pack * PACK)) return NO_MEMORY;
    return DONE;
}

INLINE int integrate_group(const integration *w, int64_t group, outline *o, int kind) {
    const void *weights = weights_of(w->weights, group * w->units * w->width, kind);
    int used = lanes_used(w->width, w->vectors, group), packs = (used + PACK - 1) / PACK;
    int64_t first = group * w->width;
    state states[PACKS];
    block b;
    double steps[BLOCK * WIDEST];
    uint8_t near[BLOCK * WIDEST];
    uint16_t loss[BLOCK];
    stretch stretches[BLOCK / RUN];
    int far = 0, summed = kind == BYTES && w->value && !w->count;
    /* Stretches are used if every rank is one row with a small loss and no single rank is needed. */
    int by_sums = kind == BYTES && !w->ends && !w->count && !w->bounds && w->wanted == (WANT_RISK | BY_STRETCHES);
    if (by_sums) memset(near, 0, sizeof near);
    for (int pack = 0; pack < packs; pack++) begin(w, &states[pack], first + pack * PACK);
    for (b.first = 0; b.first < w->keys; b.first += BLOCK) {
        if (*w->stop) return STOPPED;
        b.ranks = w->keys - b.first < BLOCK ? w->keys - b.first : BLOCK;
        for (int pack = 0; by_sums && !far && pack < packs; pack++) far = bits_of(states[pack].count >= FAR) != 0;
        if (b.ranks < BLOCK) far = 0;
        if (far) copy_block(w, weights, b.first, near, loss);
        if (summed) {
            memset(steps, 0, (size_t)b.ranks * WIDEST * sizeof(double));
            for (int64_t i = 0; i < b.ranks; i++)
                add_bytes(weights, w->width, w->unit, w->ends[b.first + i], w->ends[b.first + i + 1], steps + i * WIDEST);
        }
        prefetch next = plan_prefetch(w, b.first + PREFETCH_BLOCKS * BLOCK, packs);
        for (int pack = 0; pack < packs; pack++) {
            int lane = pack * PACK % TOGETHER;
            prefetch_part(w, weights, &next, kind);
            if (far && !lane) sum_block(near + pack * PACK, loss, least_count(&states[pack], packs - pack), stretches);
            state *s = &states[pack];
            passed along = {0};
            if (far) along = integrate_stretches(w, stretches, lane, s, first + pack * PACK);
            if (bits_of(along.done) != EVERY_LANE) {
                int ended = integrate_by_rank(w, weights, summed ? steps : NULL, &b, s, o, first, pack, kind);
                if (ended) return ended;
            }
            if (far) take_lanes(s, &along);
        }
    }
    for (int pack = 0; pack < packs; pack++) finish(w, &states[pack], first + pack * PACK);
    if (w->wanted & WANT_HULL) return finish_hulls(w, o, weights, first, used, kind);
    return DONE;
}

PUBLIC int NAME(abstain_integrate)(const integration *w) {
    outline o = {0};
    int ended = open_outline(w, &o);
    for (int64_t group = 0; group * w->width < w->vectors && !ended; group++) {
        ended = w->kind == DOUBLES ? integrate_group(w, group, &o, DOUBLES) : integrate_group(w, group, &o, BYTES);
    }
    close_outline(&o);
    return ended;
}
