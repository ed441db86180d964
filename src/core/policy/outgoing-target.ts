// Where an outgoing request may go: to a public host over https. Private, loopback and link-local addresses are refused
// unless the deployment allows them, so that a target can never be a way into the network that the Worker runs in. Names
// are not resolved here: that a public name leads to a private address is for the platform to refuse.

/** What is wrong with the target; null when it may be called. */
export function refusalOf(target: string, { allowPrivate }: { allowPrivate: boolean }): string | null {
  const url = parse(target);
  if (!url) return "is not a URL";
  if (url.hasCredentials) return "has a user name or password in it";
  if (allowPrivate)
    return url.protocol === "https" || url.protocol === "http" ? null : "is not an http(s) URL";
  if (url.protocol !== "https") return "is not an https URL";
  if (isPrivateHost(url.host)) return "is a private address";
  return null;
}

/** By hand: the core knows no platform, and URL is the platform's. Anything unusual is no match, and so refused. */
function parse(target: string): { protocol: string; hasCredentials: boolean; host: string } | null {
  const parts = /^([a-z]+):\/\/([^/?#\s\\]+)([/?#][^\s\\]*)?$/i.exec(target);
  if (!parts?.[1] || !parts[2]) return null;
  const authority = parts[2];
  const host = /^(?:[^@]*@)?(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::\d{1,5})?$/i.exec(
    authority,
  )?.[1];
  if (!host) return null;
  return {
    protocol: parts[1].toLowerCase(),
    hasCredentials: authority.includes("@"),
    host: host.toLowerCase(),
  };
}

function isPrivateHost(host: string): boolean {
  if (host.startsWith("[")) return isPrivateIpv6(host.slice(1, -1));
  const name = host.replace(/\.$/, "");
  // A name without a dot, or one that is all numbers, has a meaning only inside a network (2130706433 is 127.0.0.1).
  if (!name.includes(".") || /^[0-9a-fx.]+$/.test(name)) return !isPublicIpv4(name);
  return privateNames.test(name);
}

/** Reserved by RFC 2606, 6761, 6762, 7686 and 8375 and by ICANN; used inside clusters; and the names of home routers. */
const privateNames =
  /(^|\.)(localhost|localdomain|local|internal|intranet|private|lan|home|corp|home\.arpa|svc|test|invalid|onion|router|dhcp|(fritz|easy)\.box|fritz\.nas|speedport\.ip)$/;

function isPublicIpv4(host: string): boolean {
  const octets = /^\d{1,3}(\.\d{1,3}){3}$/.test(host) ? host.split(".").map(Number) : [];
  const [a = 0, b = 0, c = 0] = octets;
  if (octets.length !== 4 || octets.some((octet) => octet > 255)) return false;
  const isReserved =
    a === 0 ||
    a === 10 ||
    a === 127 ||
    a >= 224 ||
    (a === 100 && b >= 64 && b < 128) ||
    (a === 169 && b === 254) ||
    (a === 172 && b >= 16 && b < 32) ||
    (a === 192 && b === 168) ||
    (a === 192 && b === 0 && (c === 0 || c === 2)) ||
    (a === 192 && b === 88 && c === 99) ||
    (a === 198 && (b === 18 || b === 19)) ||
    (a === 198 && b === 51 && c === 100) ||
    (a === 203 && b === 0 && c === 113);
  return !isReserved;
}

/**
 * Only 2000::/3 is public, less 2001::/23 (Teredo, which holds an IPv4 address, and other special uses), 2002::/16 (6to4,
 * which holds one too), and documentation (2001:db8::/32, 3fff::/20).
 */
function isPrivateIpv6(address: string): boolean {
  const [first = 0, second = 0] = address.split(":").map((group) => Number.parseInt(group || "0", 16));
  const isGlobal = first >= 0x2000 && first <= 0x3fff;
  const isSpecial = first === 0x2001 && (second < 0x200 || second === 0xdb8);
  return !isGlobal || isSpecial || first === 0x2002 || first === 0x3fff || address.includes(".");
}
