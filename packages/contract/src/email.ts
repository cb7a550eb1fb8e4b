/** What an e-mail looks like; that it is somebody's, nothing here has to know. */
export const emailPattern = '^[^\\s@]+@[^\\s@]+\\.[^\\s@.]+$';
