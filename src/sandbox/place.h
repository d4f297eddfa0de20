/* place.h - one sandbox at the provider, from its open to its deletion. The bottom of this folder:
 * what is above hears of it through a table of functions. */
#ifndef SBX_SANDBOX_PLACE_H
#define SBX_SANDBOX_PLACE_H

#include "providers/provider.h"

typedef struct sbx__place sbx__place;
typedef struct sbx__places sbx__places;

typedef enum sbx__place_state {
  SBX__PLACE_OPENING,
  SBX__PLACE_OPEN,
  SBX__PLACE_HALTED,   /* was open, has its files, and does not run: the next call opens it again */
  SBX__PLACE_LATE,     /* opening still, but the callers were told that it took too long */
  SBX__PLACE_UNWANTED, /* to be deleted; with a `failure`, the last attempt failed */
  SBX__PLACE_DELETING,
  SBX__PLACE_GONE, /* nothing is left at the provider */
} sbx__place_state;

/* What has become of a place, for who keeps records. */
typedef enum sbx__life {
  SBX__LIFE_CREATED, /* it exists, and is ours */
  SBX__LIFE_STARTED, /* calls can run in it */
  SBX__LIFE_START_FAILED,
  SBX__LIFE_LOST,
  SBX__LIFE_DELETED,
  SBX__LIFE_DELETE_FAILED,
} sbx__life;

/* What the owner of places is told. */
typedef struct sbx__place_events {
  /* The start, or the start again, has ended; NULL: it succeeded. */
  void (*started)(sbx__places *places, const sbx_err *err);
  /* The provider says that it exists no more: what runs there waits for an answer in vain. */
  void (*gone)(sbx__places *places, const sbx__place *place);
  /* What an open is at; only to be taken. */
  void (*progress)(sbx__places *places, sbx_slice json);
  /* Only to be taken. `err`: why, of what failed. */
  void (*life)(sbx__places *places, const sbx__place *place, sbx__life what, const sbx_err *err);
  /* An op has ended, or a place is no more. May free the owner. */
  void (*changed)(sbx__places *places);
} sbx__place_events;

/* All places of one sandbox object, part of it. */
struct sbx__places {
  sbx_loop *loop;
  const sbx_provider *provider;
  sbx_config *config;
  const sbx__place_events *events;
  uint64_t start_timeout_ms;
  uint64_t late_timeout_ms;  /* for the answer of a create that missed the start's deadline */
  uint64_t hurry_timeout_ms; /* the same, once somebody waits for the close */
  uint64_t delete_timeout_ms;
  uint64_t search_timeout_ms; /* to find and delete what a create may have made */
  bool recreate;              /* a lost one is replaced by the next call */

  sbx__place *current; /* the one that calls use; NULL before a start and after a loss */
  sbx__place *first;   /* all that have a session, that one included */
  bool lost;           /* gone, and not to be replaced */
  bool freed;          /* the owner is about to go: nothing is to be deleted any more */
};

/* A provider's session and who still needs it. */
struct sbx__place {
  sbx__places *set;
  sbx_session *session;
  sbx__place_state state;
  size_t uses;     /* calls that run in it */
  sbx_op *op;      /* open or close */
  sbx_timer timer; /* the start's deadline, then the time for a late answer */
  sbx_timer retry; /* until the next open, after one that changed nothing */
  unsigned retries;
  unsigned reopens; /* how often; its files are not given up when it cannot be opened again */
  bool pausing;     /* the provider's pause is in flight: nothing else is sent */
  unsigned pauses;  /* begun, and not certainly without effect */
  sbx_task end;     /* frees it outside of the provider's callbacks */
  bool ending;
  char *id;          /* once it was told that it exists; it outlives the session's own */
  uint64_t since_ms; /* when what it is at began: the start, or the delete */
  /* Why it could not be deleted; NULL: it was not tried, or is being tried. */
  const sbx_err *failure;
  sbx__place *next, *prev;
};

/* Begins the one start that all waiting calls share; they fail with it. */
void sbx__place_open(sbx__places *set);
/* Opens one again that is halted; the same for its waiting calls. */
void sbx__place_reopen(sbx__place *place);
/* Deletes what is or may be there; a failure is kept in `err`. Not while an op is in flight. */
void sbx__place_delete(sbx__place *place);
/* Somebody waits for the close: a late answer is not waited for much longer. */
void sbx__place_hurry(sbx__place *place);
/* The provider says that it exists no more; it is not deleted. */
void sbx__place_is_gone(sbx__place *place);
/* A call that ran in it has ended. */
void sbx__place_leave(sbx__place *place);
/* Its op is in flight or comes, or it is about to be freed. */
bool sbx__place_is_busy(const sbx__place *place);
/* With `freed` set: lets go of what is at the provider. */
void sbx__place_abandon(sbx__place *place);
/* SBX_ETIMEOUT: who did not answer, and for how long. */
void sbx__places_no_answer(const sbx__places *set, uint64_t limit_ms, sbx_err *err);
/* Whether calls can run at once. */
bool sbx__places_are_open(const sbx__places *set);

#endif
