// Rings of frames: take a frame, give it back, put one, publish. The callers do not know which kind a ring is.
#ifndef RING_H
#define RING_H

#include <linux/if_packet.h>
#include <stdbool.h>
#include <stddef.h>

#include "layout.h"

#define INLINE static inline __attribute__((always_inline))

// DPDK memif.h, memif_desc_t.
struct descriptor {
    uint16_t flags;
    uint16_t region;
    uint32_t length;
    uint32_t offset;
    uint32_t metadata;
};

_Static_assert(sizeof(struct ring) == 128 && sizeof(struct descriptor) == 16, "as memif and Python have them");

// Frames of a packet socket that are looked for at a time: each costs a look at its header.
#define PACKETS_AT_MOST 32

#define NO_VLAN (-1)
#define VLAN_TAG_BYTES 4

// A frame that waits on a ring.
struct taken {
    uint8_t *frame;
    uint32_t length;
};

INLINE void prefetch(const void *at)
{
    __builtin_prefetch(at);
}

// The buffer that is `ahead` places behind the next one.
INLINE uint8_t *buffer_at(const struct ring *ring, uint64_t ahead)
{
    return ring->first + ((ring->index + ahead) & ring->mask) * ring->stride;
}

INLINE struct tpacket2_hdr *packet_at(const struct ring *ring, uint64_t ahead)
{
    return (struct tpacket2_hdr *)buffer_at(ring, ahead);
}

INLINE bool packet_is_there(const struct ring *ring, uint64_t ahead)
{
    return __atomic_load_n(&packet_at(ring, ahead)->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER;
}

INLINE struct descriptor *descriptor_at(const struct ring *ring, uint64_t ahead)
{
    return ring->descriptors + ((ring->index + ahead) & ring->mask);
}

// Frames that the other side has put and this side has not taken, `most` at most.
INLINE uint32_t frames_waiting(const struct ring *ring, uint32_t most)
{
    if (ring->is_socket) {
        uint32_t count = 0;
        most = most < PACKETS_AT_MOST ? most : PACKETS_AT_MOST;
        while (count < most && packet_is_there(ring, count))
            count++;
        return count;
    }
    uint16_t waiting = __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE) - (uint16_t)ring->index;
    return waiting < most ? waiting : most;
}

// All frames that wait on a ring; on a packet socket's ring, rounded down to a power of two. Too slow for each frame.
static inline uint64_t backlog(const struct ring *ring)
{
    if (!ring->is_socket)
        return frames_waiting(ring, UINT16_MAX);
    uint64_t count = 0;
    for (uint64_t ahead = 1; ahead <= ring->mask && packet_is_there(ring, ahead - 1); ahead *= 2)
        count = ahead;
    return count;
}

// The frame that is `ahead` places behind the next one to take. Whatever length the other side wrote, it ends in its
// buffer.
INLINE struct taken frame_at(const struct ring *ring, uint64_t ahead)
{
    if (ring->is_socket) {
        struct tpacket2_hdr *packet = packet_at(ring, ahead);
        return (struct taken){(uint8_t *)packet + packet->tp_mac, packet->tp_snaplen};
    }
    uint32_t length = descriptor_at(ring, ahead)->length;
    return (struct taken){buffer_at(ring, ahead), length < ring->buffer_bytes ? length : ring->buffer_bytes};
}

// The VLAN of a waiting frame, NO_VLAN where it has none; `bytes`: the length of the tag in the frame. The Linux kernel
// removes the tag from a frame and passes it separately; packet(7), PACKET_AUXDATA.
INLINE int vlan_at(const struct ring *ring, uint64_t ahead, const uint8_t *frame, uint32_t *bytes)
{
    *bytes = 0;
    if (ring->is_socket) {
        const struct tpacket2_hdr *packet = packet_at(ring, ahead);
        return packet->tp_status & TP_STATUS_VLAN_VALID ? packet->tp_vlan_tci & 0xFFF : NO_VLAN;
    }
    if (frame[12] != 0x81 || frame[13] != 0)
        return NO_VLAN;
    *bytes = VLAN_TAG_BYTES;
    return (frame[14] << 8 | frame[15]) & 0xFFF;
}

// Take `count` frames off the ring: their buffers belong to the other side again.
INLINE void give_back(struct ring *ring, uint32_t count)
{
    if (ring->is_socket) {
        for (uint32_t ahead = 0; ahead < count; ahead++)
            __atomic_store_n(&packet_at(ring, ahead)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        ring->index += count;
        return;
    }
    if (ring->offers)
        for (uint32_t ahead = 0; ahead < count; ahead++)
            descriptor_at(ring, ahead)->length = ring->buffer_bytes;
    ring->index += count;
    __atomic_store_n(ring->consumed, (uint16_t)(ring->index + ring->bias), __ATOMIC_RELEASE);
}

// True where a frame may be put. Reads the other side's index only when the known room is used up.
INLINE bool has_room(struct ring *ring)
{
    if (ring->room == 0)
        ring->room = (uint16_t)(__atomic_load_n(ring->consumed, __ATOMIC_ACQUIRE) + ring->bias - ring->index);
    return ring->room > 0;
}

// The buffer for the next frame; valid only after `has_room` was true.
INLINE uint8_t *next_buffer(const struct ring *ring)
{
    return buffer_at(ring, 0);
}

// The frame written to `next_buffer` is ready; `publish` shows it to the other side.
INLINE void put(struct ring *ring, uint32_t length)
{
    struct descriptor *descriptor = descriptor_at(ring, 0);
    descriptor->flags = 0;
    descriptor->length = length;
    ring->index++;
    ring->room--;
}

// Frames that were shown to the other side and that it has not taken.
INLINE uint16_t frames_left(const struct ring *ring)
{
    uint16_t room = __atomic_load_n(ring->consumed, __ATOMIC_ACQUIRE) + (uint16_t)(ring->bias - ring->published);
    return (uint16_t)(ring->mask + 1 - room);
}

// Show the frames that were put to the other side. Without new frames, leave its cache line alone.
INLINE void publish(struct ring *ring)
{
    if (ring->published == ring->index)
        return;
    ring->published = ring->index;
    __atomic_store_n(ring->produced, (uint16_t)ring->index, __ATOMIC_RELEASE);
}

// One of this thread's rings to put frames on, by its number among them.
INLINE struct ring *own_ring(const struct parameters *p, int side, int64_t queue)
{
    return p->ports[side].tx + queue * p->stride;
}

INLINE void publish_all(const struct parameters *p, int side)
{
    for (int64_t queue = 0; queue < p->queues; queue++)
        publish(own_ring(p, side, queue));
}

// Frames that were shown to the DUT on this thread's rings, of the client or of both sides, and that it has not taken.
static inline int64_t frames_to_take(const struct parameters *p, int64_t sides)
{
    int64_t found = 0;
    for (int side = CLIENT; side < sides; side++)
        for (int64_t queue = 0; queue < p->queues; queue++)
            found += frames_left(own_ring(p, side, queue));
    return found;
}

// Translate the number of an item of this thread into its number among those of all threads; `of_own` translates back.
INLINE int64_t of_all(const struct parameters *p, int64_t own)
{
    return own << p->thread_shift | p->thread;
}

INLINE int64_t of_own(const struct parameters *p, int64_t number)
{
    return number >> p->thread_shift;
}

// The pair of ports of a ring, or a flow, by its number among those of all threads.
INLINE int64_t pair_at(const struct parameters *p, int64_t number)
{
    return p->pairs > 1 ? number % p->pairs : 0;
}

// The pair of one of this thread's rings, by its number among them.
INLINE int64_t pair_of(const struct parameters *p, int64_t queue)
{
    return pair_at(p, of_all(p, queue));
}

// One of this thread's rings for the answer to a frame that came on a ring: a ring of the same pair, -1 where it has
// none.
INLINE int64_t queue_to_answer(const struct parameters *p, int64_t came_on)
{
    for (int64_t tried = 0; tried < p->queues; tried++) {
        int64_t queue = (came_on + tried) % p->queues;
        if (pair_of(p, queue) == pair_at(p, came_on))
            return queue;
    }
    return -1;
}

// The beginning of frames of a port of a pair.
INLINE const struct template *template_of(const struct parameters *p, int side, int64_t pair)
{
    return &p->ports[side].templates[pair];
}

// The thread to which a number belongs.
INLINE int64_t thread_of(const struct parameters *p, int64_t number)
{
    return number & ((1 << p->thread_shift) - 1);
}

// True where this thread takes the frames of a ring. The DUT chooses the ring of an answer, so a ring follows its
// frames: a thread that finds another thread's frame takes what stands before it, and leaves the ring, with its state,
// to the other thread.
INLINE bool polls(const struct parameters *p, int side, int64_t queue)
{
    const int64_t *pollers = p->ports[side].pollers;
    return !pollers || __atomic_load_n(&pollers[queue], __ATOMIC_ACQUIRE) == p->thread;
}

INLINE void leave_ring_to(const struct parameters *p, int side, int64_t queue, int64_t thread)
{
    __atomic_store_n(&p->ports[side].pollers[queue], thread, __ATOMIC_RELEASE);
}

#endif
