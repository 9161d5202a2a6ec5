/** Each cluster costs an API server of 300 MB; four are enough for every multi-cluster story we know. */
export const MAX_CLUSTERS = 4;
