/** Cases that wait for more than half a minute run at full length only when this is set. */
export const slow = process.env.CLOUDSANDBOX_SLOW === "1";
