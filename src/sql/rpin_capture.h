/*-------------------------------------------------------------------------
 *
 * rpin_capture.h
 *	  Capture at commit: the position of a commit goes to the session keys of
 *	  its transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RPIN_CAPTURE_H
#define RPIN_CAPTURE_H

/* The settings of the same names. */
extern char *rpin_session_key;
extern bool rpin_capture;

/* Installs the callbacks.  While shared_preload_libraries is loaded only. */
extern void rpin_capture_install(void);

/*
 * Arms a key: when the current transaction writes and commits, its commit pins
 * it.  Arming outlives ROLLBACK TO, which can only pin more.  Does not throw.
 */
extern void rpin_capture_arm(uint64 fingerprint);

/*
 * Has the current transaction written?  It has if it has an xid: its commit will
 * be a record, whose end is not known yet.  Does not throw.
 */
extern bool rpin_capture_has_written(void);

/*
 * COMMIT PREPARED is about to run.  It commits a transaction that has no xid in
 * this session, so the callbacks have to be told.  May throw.
 */
extern void rpin_capture_begin_prepared(void);

#endif							/* RPIN_CAPTURE_H */
