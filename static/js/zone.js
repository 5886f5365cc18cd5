// Tells the server the reader's time zone, so that it writes times in it. Until then
// they are in the workspace's, and say so.
(() => {
  'use strict';
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const cookie = `zone=${encodeURIComponent(zone || 'UTC')}`;
  if (document.cookie.split('; ').includes(cookie)) return;
  const secure = location.protocol === 'https:' ? '; secure' : '';
  document.cookie = `${cookie}; path=/; max-age=31536000; samesite=lax${secure}`;
})();
