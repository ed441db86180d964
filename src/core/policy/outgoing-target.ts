// Checks that an outgoing request goes to a public host over https. Private, loopback and link-local addresses are
// refused unless the deployment allows them, so that a target cannot reach into the Worker's own network. Names are not
// resolved: if a public name points to a private address, the platform must refuse it.

/** Why the target is refused. Null if it may be called. */
export function findRefusal(target: string, { allowPrivate }: { allowPrivate: boolean }): string | null {
  const url = parse(target);
  if (!url) return "must be a URL";
  if (url.hasCredentials) return "must not contain a user name or password";
  if (allowPrivate)
    return url.protocol === "https" || url.protocol === "http" ? null : "must be an http or https URL";
  if (url.protocol !== "https") return "must be an https URL";
  if (isPrivateHost(url.host)) return "must not be a private address";
  return null;
}

/** The core has no `URL`, which belongs to the platform. Anything unusual does not match, and is refused. */
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
  // A name without a dot only means something inside a network. A number can be an address (2130706433 is 127.0.0.1).
  if (!name.includes(".") || /^[0-9a-fx.]+$/.test(name)) return !isPublicIpv4(name);
  return privateNames.test(name);
}

/** Names reserved by RFC 2606, 6761, 6762, 7686 and 8375 and by ICANN, names inside clusters, and names of home routers. */
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
 * Only 2000::/3 is public, except 2001::/23 (Teredo, which contains an IPv4 address, and other special uses), 2002::/16
 * (6to4, which contains one too), and documentation (2001:db8::/32, 3fff::/20).
 */
function isPrivateIpv6(address: string): boolean {
  const [first = 0, second = 0] = address.split(":").map((group) => Number.parseInt(group || "0", 16));
  const isGlobal = first >= 0x2000 && first <= 0x3fff;
  const isSpecial = first === 0x2001 && (second < 0x200 || second === 0xdb8);
  return !isGlobal || isSpecial || first === 0x2002 || first === 0x3fff || address.includes(".");
}
