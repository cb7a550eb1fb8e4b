/** A session as an agent of the AG-UI protocol. */
export {};
