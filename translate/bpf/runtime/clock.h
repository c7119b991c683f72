/* The node's clock for -m time (xt_time). A program reads TAI, from Linux 6.1 on; the settings have its lead over UTC. */

static u64 (*tai_now)(void) = (void *)208; /* BPF_FUNC_ktime_get_tai_ns, which older headers lack */

/* Seconds since 1970 in UTC. */
INLINE u32 seconds_now(void)
{
	u32 zero = 0;
	struct settings *s = settings.lookup(&zero);

	return tai_now() / 1000000000ULL - (s ? s->tai_lead : 0);
}

/* The day of the month, from 1, for a number of days since 1970 (localtime_2, localtime_3 of xt_time). Years begin in
 * March here, so that the day that some years lack is their last one. */
INLINE u32 day_of_month(u32 days)
{
	u32 since = days + 719468; /* days since the first of March of the year 0 */
	u32 day = since % 146097; /* of 400 years */
	u32 year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	u32 of_year = day - (365 * year + year / 4 - year / 100);
	u32 month = (5 * of_year + 2) / 153;

	return of_year - (153 * month + 2) / 5 + 1;
}
