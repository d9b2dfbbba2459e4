import { useSuspenseQuery } from '@tanstack/react-query';
import { sessionQuery } from '../api/queries';
import type { Session } from '../api/views';

/** Who is signed in; only for what stands inside the frame, which waits for it. */
export const useSession = (): Session => useSuspenseQuery(sessionQuery).data;
