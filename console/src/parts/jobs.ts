/** Limits of jobs can be set and nothing looks at them yet: wherever one stands, this stands too. */
export const NO_JOBS_YET = 'Takes effect when jobs come.';
