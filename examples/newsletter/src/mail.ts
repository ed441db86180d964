// A mail service with an HTTP API. It sends each id once, however often it is asked to.

export interface Mail {
  id: string;
  to: string;
  subject: string;
  text: string;
}

export async function sendMails(env: Cloudflare.Env, mails: Mail[], signal: AbortSignal): Promise<void> {
  const response = await fetch(env.MAIL_URL, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(mails),
    signal,
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the mail service answered ${response.status}`);
}
