// Both ends of connections: the functions that the loops call.
#ifndef ENDS_H
#define ENDS_H

#include "connection.h"

// Connections begun, at most, before the rings are polled again.
#define BURST 16

void begin(struct run *run, int64_t now, bool counted, int64_t messages);
void sweep(struct run *run, int64_t now);
void sweep_all(struct run *run, int64_t now);
void send_due_replies(struct run *run, int64_t now);
double send_due_syns(struct run *run, double due, int64_t now);
void poll_server(struct run *run, int64_t away);
void poll_client(struct run *run, int64_t away);

#endif
