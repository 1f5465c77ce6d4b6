/* delta: a copy is completed by what is newer than it.  A document of two items is written, emptied, deleted and born
 * again, and forgets old tombstones; a holder loads it now and then.
 *
 * What is checked: after each load, the copy is what the database held at the copy's version (promise 1).
 *
 * Size: VERSIONS, 7 at most. */

#ifndef VERSIONS
#define VERSIONS 5
#endif
#define ITEMS 2

/* --- the document --- */
byte version = 1, ctime = 1, dtime = 1; /* ctime 0: it does not exist */
byte item[ITEMS];                       /* version of the row; 0: no row */
bool is_removed[ITEMS];                 /* the row is a tombstone */
#define live(i) (is_removed[i] -> 0 : item[i])
/* What it was at each version: the live items by their versions. */
byte past[16];
#define past_item(v, i) past[(v) * ITEMS + (i)]

inline remember()
{
    past_item(version, 0) = live(0);
    past_item(version, 1) = live(1)
}

inline purge(i)
{
    if
    :: is_removed[i] && item[i] <= dtime -> item[i] = 0; is_removed[i] = false
    :: else
    fi
}

active proctype writer()
{
    byte i;
end:
    do
    :: atomic {
           version < VERSIONS && ctime != 0 -> version++;
           if
           :: i = 0
           :: i = 1
           fi;
           if
           :: item[i] = version; is_removed[i] = false
           :: live(i) != 0 -> item[i] = version; is_removed[i] = true
           :: live(i) != 0 -> /* and old tombstones are forgotten */
              item[i] = version;
              dtime = version - 1;
              purge(0);
              purge(1)
           fi;
           remember();
           i = 0
       }
    :: d_step { /* deleted */
           version < VERSIONS && ctime != 0 -> version++;
           ctime = 0; dtime = 0;
           item[0] = 0; is_removed[0] = false;
           item[1] = 0; is_removed[1] = false;
           remember()
       }
    :: d_step { /* born again */
           version < VERSIONS && ctime == 0 -> version++;
           ctime = version; dtime = version;
           item[0] = version;
           remember()
       }
    od
}

/* --- the holder --- */
byte copy_version, copy_ctime;
byte copy[ITEMS]; /* versions of the live items */

byte header_version, header_ctime, header_dtime; /* as read */
bool goes_on; /* the copy's life goes on, with all removals since the copy known */

inline read_header()
{
    header_version = version;
    header_ctime = ctime;
    header_dtime = dtime;
#ifdef NO_DTIME
    goes_on = copy_version != 0 && copy_ctime != 0 && copy_ctime == header_ctime && copy_version <= header_version
#else
    goes_on = copy_version != 0 && copy_ctime != 0 && copy_ctime == header_ctime && header_dtime <= copy_version &&
              copy_version <= header_version
#endif
}

/* Whole: the live items.  Completed: whatever is newer replaces what is held. */
inline read_item(i)
{
    if
    :: !goes_on -> copy[i] = live(i)
    :: goes_on && item[i] > copy_version -> copy[i] = live(i)
    :: else
    fi
}

inline read_items()
{
    read_item(0);
    read_item(1)
}

inline keep()
{
    copy_version = header_version;
    copy_ctime = header_ctime;
    header_version = 0;
    header_ctime = 0;
    header_dtime = 0;
    goes_on = false
}

inline store_load()
{
#if defined(HEADER_FIRST)
    d_step { read_header() };
    d_step { read_items() };
    d_step { keep() }
#elif defined(ITEMS_FIRST)
    d_step { read_header(); header_version = 0 }; /* decided by a first look, the version comes last */
    d_step { read_items() };
    d_step { header_version = version; header_ctime = ctime; keep() }
#else
    d_step { read_header(); read_items(); keep() } /* one statement */
#endif
}

active proctype holder()
{
    d_step { remember() };
    do
    :: store_load();
       assert(copy[0] == past_item(copy_version, 0) && copy[1] == past_item(copy_version, 1))
    od
}
