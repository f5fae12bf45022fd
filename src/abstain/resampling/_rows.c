/* Rows of a table, counted as they come: by kind (the values of some columns), level (of a confidence) and group of clusters; and which
 * clusters there are, one bit each. Columns come a piece of the table at a time, as whole numbers and doubles without a
 * gap; whatever is not as it must be is refused, and then the engine that reads the table counts it in its own words. Those words, in
 * `readers/_counting.py`, are the definition of what is counted. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

#define MOST_KINDS 250
#define MOST_LEVELS (1 << 16)
/* For so many there is room at first: memory that nobody has written to yet costs nothing, and bins are thousands. */
#define FEW_LEVELS (1 << 8)
#define FEW_BINS (1 << 13)
#define KIND_PLACES 1024
#define LEVEL_PLACES (2 * MOST_LEVELS)
/* Levels of all kinds, whose counts take 210 MB. */
#define MOST_COUNTED (1 << 18)
#define PIECE 512
/* How clusters are put into groups, as in `abstain._units`. */
#define GROUPS 200
#define PRIME 2147483647
#define FACTOR 62089911
enum { DONE = 0, NO_MEMORY = 1, REFUSED = 4 };

/* The confidences that were rounded to one bin: their sum, the least and the largest. */
typedef struct {
    double sum, low, high;
} bin;

typedef struct {
    int64_t columns, low, high; /* how many columns tell kinds apart, of eight bytes together; the least and the largest cluster */
    int64_t rounded, rows, kinds, levels;
    uint64_t kind[MOST_KINDS]; /* the bytes of all columns, the first one lowest */
    double *level;           /* what each level stands for */
    uint32_t **count;        /* by kind: (levels, GROUPS) */
    bin **bins;              /* by kind: one for each level; empty if confidences are not rounded */
    uint8_t *there;          /* a bit for each cluster, from the lowest */
    int64_t room;            /* for so many levels there is room in `count` */
    uint8_t kind_at[KIND_PLACES];
    uint32_t level_at[LEVEL_PLACES];
} rows;

PUBLIC void abstain_rows_free(rows *r) {
    if (!r) return;
    for (int64_t kind = 0; r->count && kind < r->kinds; kind++) free(r->count[kind]);
    for (int64_t kind = 0; r->bins && kind < r->kinds; kind++) free(r->bins[kind]);
    free(r->count);
    free(r->bins);
    free(r->there);
    free(r->level);
    free(r);
}

PUBLIC rows *abstain_rows_new(int64_t columns, int64_t low, int64_t high, int64_t rounded) {
    rows *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->columns = columns;
    r->low = low;
    r->high = high;
    r->rounded = rounded;
    r->room = rounded ? FEW_BINS : FEW_LEVELS;
    r->level = calloc(MOST_LEVELS, sizeof *r->level);
    r->count = calloc(MOST_KINDS, sizeof *r->count);
    r->bins = calloc(MOST_KINDS, sizeof *r->bins);
    r->there = calloc((size_t)(high - low) / 8 + 1, 1);
    if (r->level && r->bins && r->count && r->there) return r;
    abstain_rows_free(r);
    return NULL;
}

/* A column: where its values are, how many bytes each has, and whether they have a sign. */
typedef struct {
    const void *values;
    int64_t size, sign;
} column;

static inline uint64_t mixed(uint64_t value) { return (value ^ value >> 32) * 0x9e3779b97f4a7c15ULL; }

/* Whole numbers of any size as ones of 64 bits; those without a sign must not need all of them. */
static int whole_numbers(const column *c, int64_t first, int64_t size, int64_t *out) {
#define EACH(type) for (int64_t i = 0; i < size; i++) out[i] = (int64_t)((const type *)c->values)[first + i]
    if (c->size == 8) EACH(int64_t);
    else if (c->size == 4 && c->sign) EACH(int32_t);
    else if (c->size == 4) EACH(uint32_t);
    else if (c->size == 2 && c->sign) EACH(int16_t);
    else if (c->size == 2) EACH(uint16_t);
    else if (c->sign) EACH(int8_t);
    else EACH(uint8_t);
#undef EACH
    if (c->size == 8 && !c->sign)
        for (int64_t i = 0; i < size; i++)
            if (out[i] < 0) return REFUSED;
    return DONE;
}

static void empty_bins(bin *bins, int64_t size) {
    for (int64_t i = 0; i < size; i++) bins[i] = (bin){0.0, INFINITY, -INFINITY};
}

static int add_kind(rows *r, uint64_t packed, uint64_t place) {
    if (r->kinds == MOST_KINDS || (r->kinds + 1) * r->room > MOST_COUNTED) return REFUSED;
    uint32_t *count = calloc((size_t)(r->room * GROUPS), sizeof *count);
    bin *bins = calloc((size_t)r->room, sizeof *bins);
    if (!count || !bins) {
        free(count);
        free(bins);
        return NO_MEMORY;
    }
    empty_bins(bins, r->room);
    r->kind[r->kinds] = packed;
    r->count[r->kinds] = count;
    r->bins[r->kinds] = bins;
    r->kind_at[place] = (uint8_t)++r->kinds;
    return DONE;
}

/* The kind of each row of a piece. */
static int find_kinds(rows *r, const column *columns, int64_t first, int64_t size, uint8_t *out) {
    uint64_t packed[PIECE] = {0};
    int shift = 0;
    for (int64_t c = 0; c < r->columns; shift += 8 * (int)columns[c++].size) {
#define EACH(type) for (int64_t i = 0; i < size; i++) packed[i] |= (uint64_t)((const type *)columns[c].values)[first + i] << shift
        if (columns[c].size == 1) EACH(uint8_t);
        else if (columns[c].size == 2) EACH(uint16_t);
        else if (columns[c].size == 4) EACH(uint32_t);
        else EACH(uint64_t);
#undef EACH
    }
    for (int64_t i = 0; i < size; i++) {
        uint64_t place = mixed(packed[i]) >> 54;
        while (r->kind_at[place] && r->kind[r->kind_at[place] - 1] != packed[i]) place = (place + 1) % KIND_PLACES;
        int ended = r->kind_at[place] ? DONE : add_kind(r, packed[i], place);
        if (ended) return ended;
        out[i] = (uint8_t)(r->kind_at[place] - 1);
    }
    return DONE;
}

/* The same numbers with as many zeros behind them; NULL where there is no memory. */
static void *doubled(void *old, size_t bytes) {
    char *wider = calloc(2, bytes);
    if (!wider) return NULL;
    memcpy(wider, old, bytes);
    free(old);
    return wider;
}

/* Make room for twice as many levels. */
static int more_room(rows *r) {
    if (r->room == MOST_LEVELS || 2 * r->kinds * r->room > MOST_COUNTED) return REFUSED;
    for (int64_t kind = 0; kind < r->kinds; kind++) {
        void *count = doubled(r->count[kind], (size_t)(r->room * GROUPS) * sizeof **r->count);
        if (count) r->count[kind] = count;
        bin *bins = doubled(r->bins[kind], (size_t)r->room * sizeof *bins);
        if (bins) r->bins[kind] = bins;
        if (!count || !bins) return NO_MEMORY;
        empty_bins(bins + r->room, r->room);
    }
    r->room *= 2;
    return DONE;
}

/* The leading ten bits of a number, or of what it lacks of 1 where it lies above a half: as `rounded` of `readers/_engine.py`. */
static inline double leading(double value) {
    double split = 8796093022209.0; /* 2^43 + 1 */
    return value * split - (value * split - value);
}

static inline double bin_of(double value) { return value > 0.5 && value <= 1.0 ? 1.0 - leading(1.0 - value) : leading(value); }

static int find_levels(rows *r, const double *values, int64_t size, uint32_t *out) {
    for (int64_t i = 0; i < size; i++) {
        double value = values[i] + 0.0; /* there is one zero */
        if (!(fabs(value) < 1e290)) return REFUSED;
        if (r->rounded) value = bin_of(value);
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint64_t place = mixed(bits) >> 47;
        while (r->level_at[place] && r->level[r->level_at[place] - 1] != value) place = (place + 1) % LEVEL_PLACES;
        if (!r->level_at[place]) {
            int ended = r->levels == r->room ? more_room(r) : DONE;
            if (ended) return ended;
            r->level[r->levels] = value;
            r->level_at[place] = (uint32_t)++r->levels;
        }
        out[i] = r->level_at[place] - 1;
    }
    return DONE;
}

static inline uint32_t group_of(int64_t cluster) {
    int64_t folded = cluster >= 0 && cluster < PRIME ? cluster : (cluster % PRIME + PRIME) % PRIME;
    /* The prime is 2^31 - 1: what stands above the 31st bit counts as often again. It is never reached: no product is a multiple but 0. */
    uint64_t product = (uint64_t)folded * FACTOR;
    product = (product & PRIME) + (product >> 31);
    product = (product & PRIME) + (product >> 31);
    return (uint32_t)product % GROUPS;
}

/* Add a piece of a table. REFUSED where something is not as it must be: then nothing that was counted means anything. */
PUBLIC int abstain_rows_add(rows *r, int64_t size, const column *cluster, const double *confidence, const column *columns) {
    if (r->rows + size > UINT32_MAX) return REFUSED;
    for (int64_t first = 0; first < size; first += PIECE) {
        int64_t here = size - first < PIECE ? size - first : PIECE, clusters[PIECE];
        uint8_t kinds[PIECE];
        uint32_t levels[PIECE] = {0}, *count[PIECE];
        int ended = whole_numbers(cluster, first, here, clusters);
        if (!ended) ended = find_kinds(r, columns, first, here, kinds);
        if (!ended && confidence) ended = find_levels(r, confidence + first, here, levels);
        if (ended) return ended;
        /* Counts are all over the memory, and asked for ahead. */
        for (int64_t i = 0; i < here; i++) {
            if (clusters[i] < r->low || clusters[i] > r->high) return REFUSED;
            count[i] = r->count[kinds[i]] + (int64_t)levels[i] * GROUPS + group_of(clusters[i]);
            __builtin_prefetch(count[i], 1);
        }
        for (int64_t i = 0; i < here; i++) {
            uint64_t place = (uint64_t)(clusters[i] - r->low);
            r->there[place / 8] |= (uint8_t)(1U << place % 8);
            ++*count[i];
        }
        for (int64_t i = 0; r->rounded && i < here; i++) {
            double value = confidence[first + i];
            bin *b = &r->bins[kinds[i]][levels[i]];
            b->sum += value;
            if (value < b->low) b->low = value;
            if (value > b->high) b->high = value;
        }
    }
    r->rows += size;
    return DONE;
}

/* How many clusters each group has. */
PUBLIC void abstain_rows_members(const rows *r, double *out) {
    memset(out, 0, GROUPS * sizeof *out);
    for (int64_t byte = 0; byte <= (r->high - r->low) / 8; byte++)
        for (unsigned there = r->there[byte]; there; there &= there - 1)
            out[group_of(r->low + 8 * byte + __builtin_ctz(there))]++;
}
