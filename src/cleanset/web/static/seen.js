// For how long a person has had in sight what is asked about: sent with each key, and too short a time is no answer.
// A plain script, since the study's page is also opened from the disk, where browsers load no modules.
"use strict";
{
  let seen = {};
  // Seconds since all of these images have been there, in a window that is in sight; another `subject` begins anew.
  globalThis.secondsSeen = (subject, images) => {
    if (seen.subject !== subject) seen = { subject, since: null };
    if (document.visibilityState !== "visible") seen.since = null;
    else if (images.every((image) => image.complete)) seen.since ??= performance.now();
    return seen.since === null ? 0 : (performance.now() - seen.since) / 1000;
  };
}
