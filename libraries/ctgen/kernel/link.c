// Link threads: they carry frames from rings to sockets, while a trial runs. (Frames are received in place, see ring.h.)
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_xdp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "pace.h"

// Frames handed over at a time, those that may be under way with AF_XDP, and the bytes of each one's place.
#define BATCH 32
#define ENTRIES XDP_ENTRIES
#define CHUNK_BYTES XDP_CHUNK_BYTES
// System calls without progress after which AF_XDP leaves frames for the next batch.
#define TRIES 8

// Only the thread itself adds; others read.
static void add(int64_t *counter, int64_t count)
{
    __atomic_store_n(counter, *counter + count, __ATOMIC_RELAXED);
}

static void refuse(struct link_thread *link, int64_t count)
{
    add(&link->refused, count);
    __atomic_store_n(&link->error, errno, __ATOMIC_RELAXED);
}

// Hand frames to a packet socket: one system call for all of them, which stops at one that is refused.
static void send_packets(struct link_thread *link, const struct link_queue *queue, uint32_t waiting)
{
    struct mmsghdr messages[BATCH] = {0};
    struct iovec parts[BATCH];
    for (uint32_t place = 0; place < waiting; place++) {
        struct taken taken = frame_at(queue->ring, place);
        parts[place] = (struct iovec){taken.frame, taken.length};
        messages[place].msg_hdr.msg_iov = &parts[place];
        messages[place].msg_hdr.msg_iovlen = 1;
    }
    for (uint32_t done = 0; done < waiting;) {
        int sent = sendmmsg((int)queue->socket, messages + done, waiting - done, MSG_DONTWAIT);
        if (sent <= 0) // the first of them was refused, the others were not tried
            refuse(link, 1);
        done += sent <= 0 ? 1 : (uint32_t)sent;
    }
}

// Make the kernel take the described frames; returns how many more have room. A call ends at a dropped frame.
static uint32_t tell(struct link_thread *link, const struct link_queue *queue)
{
    uint32_t produced = *queue->produced, consumed = __atomic_load_n(queue->consumed, __ATOMIC_ACQUIRE);
    for (int tries = 0; tries < TRIES && consumed != produced;) {
        // Entries that are done may be used again.
        uint32_t completed = __atomic_load_n(queue->completed, __ATOMIC_ACQUIRE);
        __atomic_store_n(queue->reused, completed, __ATOMIC_RELEASE);
        bool failed = sendto((int)queue->socket, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN;
        uint32_t before = consumed;
        consumed = __atomic_load_n(queue->consumed, __ATOMIC_ACQUIRE);
        tries = consumed == before ? tries + 1 : 0;
        if (failed)
            refuse(link, tries == 0);
    }
    return ENTRIES - (produced - consumed);
}

// Hand frames to a socket of AF_XDP: copy them to its memory, describe them, and tell the kernel.
static void send_xdp(struct link_thread *link, const struct link_queue *queue, uint32_t waiting)
{
    if (tell(link, queue) < waiting) { // the interface has not taken what it was given: it is down
        refuse(link, waiting);
        return;
    }
    uint32_t produced = *queue->produced;
    for (uint32_t place = 0; place < waiting; place++) {
        struct taken taken = frame_at(queue->ring, place);
        uint32_t slot = (produced + place) % ENTRIES;
        uint32_t length = taken.length < CHUNK_BYTES ? taken.length : CHUNK_BYTES;
        memcpy(queue->frames + slot * CHUNK_BYTES, taken.frame, length);
        queue->descriptors[slot] = (struct xdp_desc){.addr = slot * CHUNK_BYTES, .len = length};
    }
    __atomic_store_n(queue->produced, produced + waiting, __ATOMIC_RELEASE);
    tell(link, queue);
}

// Carry frames until told to stop.
void carry(struct link_thread *link)
{
    while (!__atomic_load_n(&link->stop, __ATOMIC_RELAXED)) {
        for (int64_t number = 0; number < link->queue_count; number++) {
            const struct link_queue *queue = &link->queues[number];
            uint32_t waiting = frames_waiting(queue->ring, BATCH);
            if (waiting == 0)
                continue;
            int64_t begun = cycles();
            if (queue->produced)
                send_xdp(link, queue, waiting);
            else
                send_packets(link, queue, waiting);
            give_back(queue->ring, waiting);
            add(&link->frames, waiting);
            add(&link->busy, cycles() - begun);
        }
    }
}
