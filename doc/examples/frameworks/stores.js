/* stores.js: the stores of the client library as hooks of React. */
import { useCallback, useMemo, useSyncExternalStore } from 'react'

/** The value of a store, which must be the same object in each call: a new one would be a new subscription. */
export function useStore(store) {
  const subscribe = useCallback((changed) => store.subscribe(changed), [store])
  return useSyncExternalStore(subscribe, () => store.get())
}

export const useDocument = (session, c, id) => useStore(useMemo(() => session.doc(c, id), [session, c, id]))

/** `value`: a text, a number or a truth value. */
export const useCollection = (session, c, collection, value) =>
  useStore(useMemo(() => session.collection(c, collection, value), [session, c, collection, value]))
